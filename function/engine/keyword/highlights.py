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

from function.engine.keyword.analyzer import PAIR, WORD, Stem, split_terms

SNIPPET = 240  # maximum characters of a snippet
# A sentence ends at a line break, at a full stop of Chinese or Japanese, or at a mark, with closing quotation marks or
# brackets, before white space.
SENTENCE = re.compile(
    r"\S(?:[^\n]*?(?:[.!?\u2026][\"'\u201d\u2019\u00bb)\]]*(?=\s)|(?=\n)|[\u3002\uff01\uff1f]|$)|[^\n]*)"
)

Range = tuple[int, int]  # start and end in characters (Unicode code points) of the text


@dataclass(frozen=True, slots=True)
class Highlight:
    """Parts of one text: the ranges that answer the query, ascending, and a snippet that begins near the best one."""

    ranges: list[Range]
    snippet: Range


def highlight(texts: Sequence[str], terms: "TermsOfWords", *, marks_words: bool) -> list[Highlight]:
    """Return the highlights of each text.

    marks_words: the ranges are the words of the query; otherwise, or if there are none, the best sentence.
    """
    words = [
        [(start, end, found) for start, end in terms.words(text) if (found := terms[text[start:end]])] for text in texts
    ]
    sentences = [[match.span() for match in SENTENCE.finditer(text)] or [(0, len(text))] for text in texts]
    shared_terms = [
        [frozenset[str]().union(*(found for start, _, found in hits if begin <= start < end)) for begin, end in spans]
        for hits, spans in zip(words, sentences, strict=True)
    ]
    counts = Counter(term for each in shared_terms for found in each for term in found)
    total = sum(map(len, sentences))
    weights = {term: math.log1p(total / count) for term, count in counts.items()}
    highlights = []
    for text, hits, spans, shared in zip(texts, words, sentences, shared_terms, strict=True):
        scores = [sum(sorted(weights[term] for term in terms)) for terms in shared]
        best = scores.index(max(scores))
        inside = _merge((start, end) for start, end, _ in hits)
        ranges = inside if marks_words and inside else [spans[best]]
        first = next((start for start, _ in inside if start >= spans[best][0]), spans[best][0])
        highlights.append(Highlight(ranges, _snippet(text, spans[best], first)))
    return highlights


def _merge(ranges: Iterable[Range]) -> list[Range]:
    """Return ascending ranges with those that overlap as one."""
    merged: list[Range] = []
    for start, end in ranges:
        if merged and start < merged[-1][1]:
            start = merged.pop()[0]
        merged.append((start, end))
    return merged


class TermsOfWords(dict[str, frozenset[str]]):
    """The terms of the query that each word has; a word is read once."""

    def __init__(self, query: str, stem: Stem | None, version: int, corrected: Set[str] = frozenset()) -> None:
        """Take the query, the stemmer and the version of the terms, and the terms that replace misspelled words."""
        self._terms = frozenset(split_terms(query, stem, version, is_query=True)) | corrected
        self._stem = stem
        self._version = version

    def words(self, text: str) -> list[Range]:
        """Return where the words of a text are, and the pairs of Chinese, Japanese or Thai characters; ascending."""
        words = [word.span() for word in WORD.finditer(text)]
        if self._version > 1 and not text.isascii():
            words = sorted(words + [pair.span(1) for pair in PAIR.finditer(text)])
        return words

    def __missing__(self, word: str) -> frozenset[str]:
        if word.isascii() and word.isalpha() and len(word) <= SNIPPET:  # what split_terms does, in a tenth of its time
            lowered = word.lower()
            found = self._terms.intersection((self._stem(lowered) if self._stem else lowered,))
        else:
            # read as a query, a pair is no character of it
            found = self._terms.intersection(split_terms(word, self._stem, self._version, is_query=True))
        self[word] = found
        return found


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
        end = cut if cut > start + SNIPPET // 2 else end  # a text without blanks is divided anywhere
    if len(text) - start < SNIPPET:
        start = _next_word(text, max(0, end - SNIPPET))
    return start, start + len(text[start:end].rstrip())


def _next_word(text: str, place: int) -> int:
    """Return where the first word begins at or after a place in the text, or the place if there is none soon."""
    if place == 0 or text[place - 1].isspace():
        return place
    blank = re.compile(r"\s+").search(text, place, place + SNIPPET // 4)
    return blank.end() if blank else place
