"""Text to terms: what keyword search compares, made by the same function for a passage and for a query.

A text is brought into one form first (Unicode NFKC and case folding: "STRASSE" and "straße" are equal). Its terms are

- each word: letters and digits up to anything else. Chinese, Japanese and Thai put no blanks between words, so each of
  their characters is a word.
- each code as a whole: words joined by a hyphen, an underscore, a point, a slash, a colon, an at sign or an ampersand,
  with the plus or number signs after them. "AB-1234" has the terms "ab", "1234" and "ab-1234", "C++" has "c" and "c++".

Words of letters alone may be stemmed, which brings "searches" and "searching" to "search". A code never is.
Left out: stop words (frequent words count little in BM25 anyway), synonyms, and accents, which stay.
"""

import re
from collections.abc import Callable
from unicodedata import normalize

Stem = Callable[[str], str]

_SINGLE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Thai, kana and Chinese characters
_MARK = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"  # accents of their own and India's vowel signs, no letters to Python
_WORD = rf"(?:[{_SINGLE}]|(?:[^\W_{_SINGLE}]|[{_MARK}])+)"
WORD = re.compile(_WORD)
CODE = re.compile(rf"{_WORD}(?:[-_./:@&]{_WORD})*[+#]*")
QUOTED = re.compile(r'(?<!\S)["“„]([^"“”„]+)["”“]')


def split_terms(text: str, stem: Stem | None = None) -> list[str]:
    """Return the terms of a text, repeated as often as they occur; each code comes before its words.

    stem is what `find_stemmer` returns, None for none.
    """
    terms = []
    for code in CODE.findall(normalize("NFKC", text).casefold()):
        words = WORD.findall(code)
        if words != [code]:
            terms.append(code)
        terms += words if stem is None else [stem(word) if word.isalpha() else word for word in words]
    return terms


def quoted_parts(text: str) -> list[str]:
    """Return what stands between quotation marks in a text: the parts whose words must occur in a hit."""
    found: list[str] = QUOTED.findall(text)
    return found


def find_stemmer(language: str | None) -> Stem | None:
    """Return the Snowball stemmer of a language such as "english", or None for None.

    Raises KeyError if Snowball has no such language.
    """
    if language is None:
        return None
    import Stemmer  # only keyword search with stems needs it

    stem: Stem = Stemmer.Stemmer(language).stemWord
    return stem
