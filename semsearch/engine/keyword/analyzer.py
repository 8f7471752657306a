"""Text to terms: what keyword search compares, made by the same function for a passage and for a query.

A text is brought into one form first (Unicode NFKC and case folding: "STRASSE" and "straße" are equal). NFKC takes time
quadratic in the length of a run of combining marks, so only the first MOST_MARKS of a run are read. The terms are

- each word: letters and digits up to anything else, and the word without its accents, so that "zurich" finds "Zürich"
  and "Zürich" finds that spelling first. Chinese, Japanese and Thai put no blanks between words: a text has each of
  their characters and each pair of neighbours, and a query has the pairs, or the character if it stands alone.
- each code as a whole: words joined by a hyphen, an underscore, a point, a slash, a colon, an at sign or an ampersand,
  with the plus or number signs after them. "AB-1234" has the terms "ab", "1234" and "ab-1234", "C++" has "c" and "c++".

Words of letters alone may be stemmed, which brings "searches" and "searching" to "search". A code never is.
Left out: stop words (frequent words count little in BM25 anyway).

An index has further terms, which do not count towards the length of a text. A code of two or three words with hyphens
or underscores is also one word: "T-shirt" is found by "tshirt" (`joined_codes`). For queries that are a name or a
heading and nothing else, there are IN_HEADING and a name or a heading, or IN_TEXT and a name, such as "=get_default",
"=create a page" and "~multiple=true". `find_name` and `names_in` say what a name is.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache
from itertools import pairwise
from string import punctuation, whitespace
from unicodedata import combining, normalize

STOP_WORDS = {  # by the name of Snowball's stemmer
    "danish": "af at de den der det du en er et for fra han har hun i ikke jeg med og om på som til var vi",
    "dutch": """
        aan als bij dat de die dit door een en er hij het ik in is je met naar niet of om op te van voor was we ze
        zijn zij""",
    "english": """
        a about all an and any are as at be been but by can could did do does for from had has have he her his how i
        if in into is it its me my no not of on or our s shall she should so such than that the their them then there
        these they this those to was we were what when where which who whom whose why will with would you your""",
    "french": """
        à au aux avec ce ces cette c dans de des du d elle en est et il ils j je l la le les leur lui mais ne nous n
        on ou où par pas pour qu que qui s sa se ses son sont sur un une vous y""",
    "german": """
        als am an auch auf aus bei bin das dass dem den der des die du ein eine einem einen einer eines er es für hat
        ich ihr im in ist mit nach nicht oder sein sich sie sind so um und uns vom von vor war was wer wie wir wird wo
        zu zum zur über""",
    "italian": """
        a al alla ai che chi ci come con da dal dalla dei del della delle di e è gli i il in io la le l lo ma ne nel
        nella non o per più se si sono su sul un una uno""",
    "norwegian": "av at de den der det du en er et for fra han har hun i ikke jeg med og om på som til var vi",
    "portuguese": """
        a ao aos as com da das de do dos e é em eu mas na nas no nos não o os ou para pela pelo por que se sem seu sua
        são um uma""",
    "spanish": """
        a al como con cuando de del donde e el ella en es está este esta ha la las le lo los me mi no nos o para pero
        por qué que quién se si sin son su sus también un una y yo""",
    "swedish": "att av de den det du en ett för från han har hon i inte jag med och om på som till var vi är",
}


def stop_words_of(languages: Iterable[str | None]) -> frozenset[str]:
    """Return the stop words of these languages in lower case; a language without a list has none."""
    return frozenset(word for language in languages for word in STOP_WORDS.get(language or "", "").split())


# How many characters of the form NFKC are read: for each character of a text, and besides. No language grows so much,
# but U+FDFA becomes 18 characters, and a long query of it would take seconds.
MOST_GROWTH, FREE_GROWTH = 2, 1_000
MOST_MARKS = 30  # maximum marks in a run, as in https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format
LONGEST_STEMMED = 1_000  # letters; no word of a language is as long, and some stemmers take quadratic time

LONGEST_QUERY = 300  # characters; a longer text was pasted, and its quotation marks are part of it

Stem = Callable[[str], str]

_SINGLE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Thai, kana and Chinese characters
_MARK = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"  # accents of their own and India's vowel signs, no letters to Python
LETTER = rf"[^\W_{_SINGLE}]"  # or a digit
_WORD = rf"(?:[{_SINGLE}]|{LETTER}+(?:[{_MARK}]+{LETTER}*)*|(?:[{_MARK}]+{LETTER}*)+)"
# Patterns of Unicode stay strings, because compiling them takes 10 ms and a query in ASCII needs none of them.
WORD = _WORD
_WORD_OR_RUN = _WORD.replace(f"[{_SINGLE}]|", f"[{_SINGLE}]+|")
_CODE = rf"{_WORD_OR_RUN}(?:[-_./:@&]{_WORD_OR_RUN})*[+#]*"
_ASCII_CODE, _ASCII_WORD = re.compile(r"[a-z0-9]+(?:[-_./:@&][a-z0-9]+)*[+#]*"), re.compile("[a-z0-9]+")
MARKS_OF_CODES = b"-_./:@&+#"  # a term without them is a word
# This class has all combining marks. NFKC turns U+FF9E and U+FF9F into marks, although Python calls them letters.
_MAYBE_MARK = r"[\W\uff9e\uff9f]"
_STEP = 5  # a run of more than 30 characters has at least 6 of every fifth character of the text
_MAYBE_MARKS = re.compile(_MAYBE_MARK + rf"{{{(MOST_MARKS + 1) // _STEP}}}")
_MARKS = re.compile(_MAYBE_MARK + rf"{{{MOST_MARKS + 1},}}")
_RUN = rf"[{_SINGLE}]+"
PAIR = rf"(?=([{_SINGLE}]{{2}}))"  # each pair of neighbours, which overlap
_ACCENTS = re.compile("[\u0300-\u036f]+")
_BARE = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_APOSTROPHES = str.maketrans("\u2018\u2019", "''")
PUNCTUATION = "".join(sorted(set(punctuation + whitespace) - set("+#")))  # around a word, no part of its code
JOINED = (2, 3)  # number of words of a code that are also one word
IN_HEADING, IN_TEXT = "=", "~"  # first character of a name's terms; no other term begins with them
LONGEST_NAME = 64  # characters
_BEFORE_NAMES = "\"'`([{<,;:!?*\u201c\u2018\u00ab"
_AFTER_NAMES = "\"'`)]}>,;:!?.*\u201d\u2019\u00bb"
_MARKED = re.compile(rf"(?<!\S)\S{{0,{LONGEST_NAME}}}[=$@.\-:/]\S{{1,{LONGEST_NAME}}}")  # a mark before something
# English and German quotation marks, then those of French, which German books write the other way round
QUOTED = re.compile(r'(?<!\S)(?:["“„]([^"“”„]+)["”“]|«([^«»]+)»|»([^«»]+)«)')


def split_terms(text: str, stem: Stem | None = None, *, is_query: bool = False) -> list[str]:
    """Return the terms of a text, repeated as often as they occur; each code comes before its words.

    stem is what `find_stemmer` returns, None for none. Only the terms of a query leave out the characters of pairs.
    """
    if text.isascii() and (word := text.strip(PUNCTUATION).lower()).isalpha():  # quicker for most words of a corpus
        return [word if stem is None else _stem(word, stem)]
    terms = []
    for code, words in find_codes(text):
        if words != [code]:
            terms += _spellings(code, None)
        if code.isascii():
            terms += words if stem is None else [_stem(word, stem) for word in words]
            continue
        for word in words:
            if re.fullmatch(_RUN, word):
                terms += [f"{left}{right}" for left, right in pairwise(word)]
                terms += word if len(word) == 1 or not is_query else ""
            else:
                terms += _spellings(word, stem)
    return terms


def find_codes(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each code of a text in the one form, and its words; a word by itself is a code of one word.

    A run of Chinese, Japanese or Thai characters is one word here.
    """
    if text.isascii():
        yield from ((code, _ASCII_WORD.findall(code)) for code in _ASCII_CODE.findall(text.lower()))
        return
    if len(text) > MOST_MARKS and _MAYBE_MARKS.search(text[::_STEP]):
        text = _MARKS.sub(_cut_marks, text)
    normalized = normalize("NFKC", text)[: MOST_GROWTH * len(text) + FREE_GROWTH]
    for code in re.findall(_CODE, normalized.casefold()):
        yield code, re.findall(_WORD_OR_RUN, code)


def joined_codes(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each code of two or three with hyphens or underscores, and the word that they make without."""
    if "-" not in text and "_" not in text:
        return
    for code, words in find_codes(text):
        whole = "".join(words)
        is_joined = len(words) in JOINED and re.split("[-_]", code) == words
        if is_joined and not whole.isdecimal() and (whole.isascii() or not re.search(_RUN, whole)):
            yield words, whole


def joined_neighbours(text: str, stop_words: Set[str]) -> Iterator[tuple[list[str], str]]:
    """Yield two words of a text and the word that they make without the blank between them; no stop word is one.

    "a red t shirt" has "redt" and "tshirt". Neighbours with a punctuation mark between them make no word.
    """
    for left, right in pairwise(text.casefold().split()):
        whole = (left + right).strip(PUNCTUATION)
        if whole.isalnum() and not whole.isdecimal():
            words = [left.strip(PUNCTUATION), right.strip(PUNCTUATION)]
            if stop_words.isdisjoint(words):
                yield words, whole


def find_name(text: str) -> str | None:
    """Return the name that a text is, in lower case and without the punctuation around it; None if it is none.

    A name has a letter and no blank, such as `Option.get_default()`, `--no-cache`, C++ or E1001.
    """
    name = text.strip()
    if len(name) > LONGEST_NAME or any(map(str.isspace, name)):
        return None
    name = name.removesuffix("()").lstrip(_BEFORE_NAMES).rstrip(_AFTER_NAMES).removesuffix("()").casefold()
    if any(map(str.isalpha, name)):
        return name
    return None


def find_heading(text: str) -> str | None:
    """Return a text as headings are compared: in lower case, without punctuation around it; None if it is too long."""
    heading = " ".join(text.casefold().split()).strip(PUNCTUATION)
    if 0 < len(heading) <= LONGEST_NAME:
        return heading
    return None


def plain_name(name: str) -> str:
    """Return a name or a heading as it is typed: without accents, and with the straight apostrophes of keyboards.

    Generators of sites write the apostrophe of "l'élément" as U+2019.
    """
    return fold_accents(name.translate(_APOSTROPHES))


def names_in(text: str) -> Iterator[str]:
    """Yield the names of a text that have characters which no term has, such as `--no-cache` and `multiple=True`."""
    for token in _MARKED.findall(text):
        name = find_name(token)
        if name is not None and "://" not in name and not re.fullmatch(_CODE, name):
            yield name


def unfinished_words(text: str) -> list[str]:
    """Return the last word of a text, and its last code if that has several words, each also without its accents.

    The list is empty if the text ends with a blank or a punctuation mark, because then its last word is complete.
    """
    last = text[-1:]
    is_unfinished = last.isalnum() if last.isascii() else re.fullmatch(WORD, last) is not None
    codes = list(find_codes(text.split()[-1])) if is_unfinished else []
    ends = [end for code, words in codes[-1:] for end in (words[-1], code)]
    return [*dict.fromkeys(spelling for end in ends for spelling in _spellings(end, None))]


def fold_accents(word: str) -> str:
    """Return a word of Latin, Greek or Cyrillic letters without their accents; "ø" and the like become letters."""
    return normalize("NFC", _ACCENTS.sub("", normalize("NFD", word)).translate(_BARE))


def _spellings(word: str, stem: Stem | None) -> list[str]:
    spelled = word if stem is None else _stem(word, stem)
    if word.isascii() or not re.search(WORD, bare := fold_accents(word)):
        return [spelled]
    folded = bare if stem is None else _stem(bare, stem)
    if folded == spelled:
        return [spelled]
    return [spelled, folded]


def _stem(word: str, stem: Stem) -> str:
    if word.isalpha() and len(word) <= LONGEST_STEMMED:
        return stem(word)
    return word


def _cut_marks(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if combining(normalize("NFKD", character)[0]) else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def quoted_parts(text: str) -> list[str]:
    """Return the parts of a text between quotation marks; their words must occur in a hit.

    A text of more than LONGEST_QUERY characters has none. Five of CISI's questions are abstracts with quotation marks,
    and three of these found nothing while such words had to occur.
    """
    found: list[str] = []
    if len(text) <= LONGEST_QUERY:
        found = [quoted[quoted.lastindex or 0] for quoted in QUOTED.finditer(text)]
    return found


@cache
def find_stemmer(language: str | None) -> Stem | None:
    """Return the Snowball stemmer of a language such as "english", or None for None.

    Raises KeyError if Snowball has no such language.
    """
    if language is None:
        return None
    import Stemmer  # only keyword search with stems needs it

    # 0: without a cache of its own, which takes longer than stemming when few words repeat
    stem: Stem = Stemmer.Stemmer(language, 0).stemWord
    return stem
