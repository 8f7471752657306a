"""Where a text answers a query: the words of the query in it, its best sentence, and a snippet around that.

The best sentence is the one that shares the rarest terms with the query. Terms are those of keyword search, and a term
is rare if few sentences of the reply have it. This needs no model: embedding every sentence of the hits would take
longer than the search. Imported by the first query that asks for highlights.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from semsearch.engine.keyword.analyzer import (
    LETTER,
    PAIR,
    WORD,
    find_stemmer,
    joined_codes,
    split_terms,
    stop_words_of,
)

SNIPPET = 240  # maximum characters of a snippet
LONGEST_LABEL = 20  # characters of a label of a note or a file, with which no snippet should begin
# A sentence ends at a line break, at a full stop of Chinese or Japanese, or at a mark, with closing quotation marks or
# brackets, before white space.
_MARK, _CLOSING, _FULL_STOP = r"[.!?\u2026]", r"[\"'\u201d\u2019\u00bb)\]]*", r"\u3002\uff01\uff1f"
SENTENCE = re.compile(
    rf"(?=\S)(?:[^\n.!?\u2026{_FULL_STOP}]++|{_MARK}(?!{_CLOSING}(?:\s|$)))*+(?:{_MARK}{_CLOSING}|[{_FULL_STOP}])?"
)
# the words of this can be one word of the query
HYPHENATED = re.compile(rf"(?<!{LETTER}){LETTER}++(?:[-_]{LETTER}++){{1,2}}")
Range = tuple[int, int]  # start and end in characters (Unicode code points) of the text


@dataclass(frozen=True, slots=True)
class Highlight:
    """Parts of one text: the ranges that answer the query, ascending, and a snippet that begins near the best one."""

    ranges: list[Range]
    snippet: Range


def highlight(texts: Sequence[str], terms: "TermsOfWords", *, marks_words: bool) -> list[Highlight]:
    """Return the highlights of each text, in time that is linear in their lengths.

    marks_words: the ranges are the words of the query, none if the text has none; otherwise the best sentence.
    """
    divided = [_divide(text, terms) for text in texts]
    counts = Counter(term for _, shared, _ in divided for found in shared for term in found)
    total = sum(len(sentences) for sentences, _, _ in divided)
    weights = {term: math.log1p(total / count) for term, count in counts.items()}
    highlights = []
    for text, (sentences, shared, words) in zip(texts, divided, strict=True):
        scores = [math.fsum(weights[term] for term in found) for found in shared]
        best = max(zip(scores, sentences, strict=True), key=_rank)[1]
        first = next((start for start, _ in words if start >= best[0]), best[0])
        highlights.append(Highlight(words if marks_words else [best], _snippet(text, best, first)))
    return highlights


def beginning(text: str) -> Highlight:
    """Return what a list of texts without a query shows of one: no ranges, and a snippet from its first word on."""
    first = SENTENCE.search(text)
    start = first.start() if first else 0
    return Highlight([], _snippet(text, (start, start), start))


def _rank(scored: tuple[float, Range]) -> tuple[float, bool]:
    """Return what orders sentences: the score, and of equal scores whether it is more than a label, such as Warning."""
    score, (start, end) = scored
    return score, end - start > LONGEST_LABEL


def _divide(text: str, terms: "TermsOfWords") -> tuple[list[Range], list[set[str]], list[Range]]:
    sentences = [match.span() for match in SENTENCE.finditer(text)] or [(0, len(text))]
    shared: list[set[str]] = [set() for _ in sentences]
    words: list[Range] = []
    place = 0
    for start, end in terms.words(text):
        if found := terms[text[start:end]]:
            words.append((start, end))
            while sentences[place][1] <= start:
                place += 1
            shared[place] |= found
    return sentences, shared, _merge(words)


def _merge(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end in ranges:
        if merged and start < merged[-1][1]:
            start, last = merged.pop()
            end = max(last, end)
        merged.append((start, end))
    return merged


class TermsOfWords(dict[str, frozenset[str]]):
    """The terms of the query that each word has; a word is read once."""

    def __init__(self, query: str, languages: Sequence[str | None], others: Set[str] = frozenset()) -> None:
        """Take the query, the languages of the stemmers, and further terms to mark.

        Stop words of the query are left out, unless it has no other words.
        """
        self._stems = [find_stemmer(language) for language in languages]
        ignored = stop_words_of(languages)
        content = re.sub(WORD, lambda word: " " if word[0].lower() in ignored else word[0], query)
        self._terms = (self._split(content) or self._split(query)) | others

    def words(self, text: str) -> list[Range]:
        """Return where the words of a text are, those with hyphens, and the pairs of Chinese characters; ascending."""
        words = [word.span() for word in re.finditer(WORD, text)]
        others = []
        if "-" in text or "_" in text:
            others += [code.span() for code in HYPHENATED.finditer(text)]
        if not text.isascii():
            others += [pair.span(1) for pair in re.finditer(PAIR, text)]
        if others:
            words = sorted(words + others)
        return words

    def __missing__(self, word: str) -> frozenset[str]:
        if word.isascii() and word.isalpha() and len(word) <= SNIPPET:  # what split_terms does, in a tenth of its time
            lowered = word.lower()
            found = self._terms.intersection([stem(lowered) if stem else lowered for stem in self._stems])
        elif HYPHENATED.fullmatch(word):
            found = self._terms & self._split(" ".join(whole for _, whole in joined_codes(word)))
        else:
            found = self._terms & self._split(word)
        self[word] = found
        return found

    def _split(self, text: str) -> frozenset[str]:
        """Return the terms of a text in each language, read as a query: then a pair is no character of it."""
        return frozenset(term for stem in self._stems for term in split_terms(text, stem, is_query=True))


def _snippet(text: str, sentence: Range, word: int) -> Range:
    """Return at most SNIPPET characters from the sentence on; if it is longer, its part with the word at `word`.

    It begins and ends between words. If the text ends sooner, the snippet begins before the sentence.
    """
    start = sentence[0]
    if word - start > SNIPPET // 2 and sentence[1] - start > SNIPPET:
        start = _next_word(text, word - SNIPPET // 3)
    end = min(start + SNIPPET, len(text.rstrip()))
    if end < len(text) and not text[end].isspace():
        cut = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        if cut > start + SNIPPET // 2:  # a text without blanks is divided anywhere
            end = cut
    if len(text) - start < SNIPPET:
        start = min(start, _next_word(text, max(0, end - SNIPPET)))
    return start, start + len(text[start:end].rstrip())


def _next_word(text: str, place: int) -> int:
    """Return where the first word begins at or after a place in the text, or the place if there is none soon."""
    if place == 0 or text[place - 1].isspace():
        return place
    blank = re.compile(r"\s+").search(text, place, place + SNIPPET // 4)
    if blank:
        return blank.end()
    return place
