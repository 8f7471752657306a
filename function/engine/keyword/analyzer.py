"""Text to terms: what keyword search compares, made by the same function for a passage and for a query.

A text is brought into one form first (Unicode NFKC and case folding: "STRASSE" and "straße" are equal). NFKC takes time
quadratic in the length of a run of combining marks, so only the first MOST_MARKS of a run are read. The terms are

- each word: letters and digits up to anything else. Chinese, Japanese and Thai put no blanks between words, so each of
  their characters is a word.
- each code as a whole: words joined by a hyphen, an underscore, a point, a slash, a colon, an at sign or an ampersand,
  with the plus or number signs after them. "AB-1234" has the terms "ab", "1234" and "ab-1234", "C++" has "c" and "c++".

Words of letters alone may be stemmed, which brings "searches" and "searching" to "search". A code never is.
Left out: stop words (frequent words count little in BM25 anyway), synonyms, and accents, which stay.
"""

import re
from collections.abc import Callable
from functools import cache
from unicodedata import combining, normalize

MOST_MARKS = 30  # maximum marks in a run, as in https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format
LONGEST_STEMMED = 1_000  # letters; no word of a language is as long, and some stemmers take quadratic time

Stem = Callable[[str], str]

_SINGLE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Thai, kana and Chinese characters
_MARK = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"  # accents of their own and India's vowel signs, no letters to Python
_LETTER = rf"[^\W_{_SINGLE}]"  # or a digit
_WORD = rf"(?:[{_SINGLE}]|{_LETTER}+(?:[{_MARK}]+{_LETTER}*)*|(?:[{_MARK}]+{_LETTER}*)+)"
WORD = re.compile(_WORD)
CODE = re.compile(rf"{_WORD}(?:[-_./:@&]{_WORD})*[+#]*")
# This class has all combining marks. NFKC turns U+FF9E and U+FF9F into marks, although Python calls them letters.
_MAYBE_MARK = r"[\W\uff9e\uff9f]"
_STEP = 5  # a run of more than 30 characters has at least 6 of every fifth character of the text
_MAYBE_RUN = re.compile(_MAYBE_MARK + rf"{{{(MOST_MARKS + 1) // _STEP}}}")
_RUN = re.compile(_MAYBE_MARK + rf"{{{MOST_MARKS + 1},}}")
QUOTED = re.compile(r'(?<!\S)["“„]([^"“”„]+)["”“]')


def split_terms(text: str, stem: Stem | None = None) -> list[str]:
    """Return the terms of a text, repeated as often as they occur; each code comes before its words.

    stem is what `find_stemmer` returns, None for none.
    """
    if len(text) > MOST_MARKS and not text.isascii() and _MAYBE_RUN.search(text[::_STEP]):
        text = _RUN.sub(_cut_marks, text)
    terms = []
    for code in CODE.findall(normalize("NFKC", text).casefold()):
        words = WORD.findall(code)
        if words != [code]:
            terms.append(code)
        if stem is not None:
            words = [stem(word) if word.isalpha() and len(word) <= LONGEST_STEMMED else word for word in words]
        terms += words
    return terms


def _cut_marks(run: re.Match[str]) -> str:
    """Return a run of characters without the combining marks that follow MOST_MARKS others."""
    kept, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if combining(normalize("NFKD", character)[0]) else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def quoted_parts(text: str) -> list[str]:
    """Return the parts of a text between quotation marks; their words must occur in a hit."""
    found: list[str] = QUOTED.findall(text)
    return found


@cache  # a stemmer remembers the stems of 10,000 words
def find_stemmer(language: str | None) -> Stem | None:
    """Return the Snowball stemmer of a language such as "english", or None for None.

    Raises KeyError if Snowball has no such language.
    """
    if language is None:
        return None
    import Stemmer  # only keyword search with stems needs it

    stem: Stem = Stemmer.Stemmer(language).stemWord
    return stem
