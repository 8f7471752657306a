"""The terms of a corpus: BM25 postings that `index` has scored already and that are memory-mapped.

BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) adds up an impact of each of the query's
terms: idf(term) * tf / (tf + K1 * (1 - B + B * length / mean length)). tf says how often the term occurs in the row,
and idf is log(1 + (rows - n + 0.5) / (n + 0.5)) for a term that n rows have, as in Lucene. An impact depends on nothing
in the query, so the index stores it, in 8 bit with a scale for each term.

    terms, terms.offsets        UTF-8 bytes of the terms, sorted by byte, and offsets (terms + 1,) uint64
    postings.offsets            where the postings of each term begin (terms + 1,) uint64
    rows, impacts               the row and the impact of each posting, uint32 and uint8; the rows of a term ascend
    scales                      the scale of each term's impacts (terms,) float32
    words                       UTF-8 bytes of the different words of three letters or more, without codes and numbers,
                                sorted, each followed by a line feed: what replaces a misspelled word of a query

A query reads the postings of its own terms and no others: a term is found by binary search over the mapped bytes,
or is known from an earlier query.
semsearch/engine/keyword/matches.py computes the scores.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from copy import copy
from functools import cached_property, lru_cache, reduce
from operator import or_
from pathlib import Path
from typing import Self

import numpy as np

from semsearch.engine.bundle import KeywordsInfo
from semsearch.engine.hits import Mask, largest
from semsearch.engine.keyword.analyzer import (
    MARKS_OF_CODES,
    Stem,
    find_codes,
    find_stemmer,
    split_terms,
    stop_words_of,
)
from semsearch.engine.keyword.matches import LARGEST_IMPACT, Correction, Postings, damaged_row
from semsearch.engine.tensors import DAMAGED, AnyArray, Array, TensorsError, check_ascending, map_tensors

K1 = 1.2  # saturation: the higher, the more a repeated term counts; K1 and B are Lucene's defaults
B = 0.75  # length normalization: 0 ignores the length of a text, 1 divides by it
UNKNOWN = 1.5  # what a word that no text has would add to a score, in idf, for the score that a query can attain
SHORTEST_BEGINNING = 2  # letters of an unfinished word; nearly every text has a word that begins with a given letter
MOST_COMPLETIONS = 32  # terms that can complete a word
KNOWN_TERMS = 4_096  # terms of earlier queries whose numbers are kept, because queries share many of their words
LONGEST_KNOWN = 64  # bytes of a term whose number is kept; without a limit, long ones could take a gigabyte
MOST_CHECKED = 100  # texts of a view that are searched for a word before it replaces a misspelled one
SYNONYM_WEIGHT = 0.7  # weight of a synonym: its texts come after those with the word itself


class Terms:
    """The corpus's terms and their postings, memory-mapped."""

    def __init__(
        self, path: Path, info: KeywordsInfo, rows: int, split_word: Callable[[str], Sequence[str]] = list
    ) -> None:
        """Map a keywords.safetensors; info describes it, and rows is the number of rows of the corpus.

        split_word is that of the bundle's embedder, which tells misspelled words from correct ones.
        Raises TensorsError if the file is not whole.
        """
        tensors = map_tensors(path)
        self.info = info
        self.split_word = split_word
        self._terms = tensors.strings("terms", "terms.offsets")
        terms = len(self._terms)
        self._ends = tensors.require("postings.offsets", [terms + 1], np.uint64)
        self._holders = tensors.require("rows", [None], np.uint32)  # the row of each posting
        self._impacts = tensors.require("impacts", [len(self._holders)], np.uint8)
        self._scales = tensors.require("scales", [terms], np.float32)
        self.words: AnyArray = tensors.require("words", [None], np.uint8)  # as the file has them
        self.path = path
        self._rows = self._count = rows  # texts of the corpus, and texts that can be found
        self._view: tuple[Mask, Callable[[int], str]] | None = None
        self._stems = [find_stemmer(language) for language in info.stemmers]
        self.stop_words = stop_words_of(info.stemmers)
        # not a method of `self`, or the mapped file would stay open until the garbage collector runs
        self._find = lru_cache(KNOWN_TERMS)(self._terms.find)

    def among(self, allowed: Mask, text_of: Callable[[int], str]) -> Self:
        """Return the keywords of some rows alone; allowed is (rows,) bool, text_of returns the text of a row.

        A term that none of these rows has is unknown, and the weights of the others are those of these rows.
        """
        found = copy(self)
        found._view, found._count = (allowed, text_of), int(np.count_nonzero(allowed))
        return found

    @cached_property
    def word_ends(self) -> Array[np.intp]:
        """Where the line feed behind each of `words` is. Finding them takes a quarter of a query's first correction."""
        return np.flatnonzero(self.words == ord("\n"))

    def replacing(self, correction: Correction, weight: float) -> tuple[list[Postings], set[str]]:
        """Return the postings of the words that replace a misspelled one and of their synonyms, and these synonyms."""
        found, synonyms = [], set[str]()
        for term in [term for terms in correction.values() for term in terms]:
            own = self.postings(term, weight)
            if own is not None:
                found.append(own)
            if term in self.info.synonyms:
                others = self.synonyms_of(term, weight, ())
                found += others.values()
                synonyms |= others.keys()
        if not found:
            words = f"one of the words {', '.join(correction)} that no text has"
            raise TensorsError(f"{self.path}: words: found {words}, expected words of the texts; {DAMAGED}")
        return found, synonyms

    def rows_with_words(self, text: str) -> Mask:
        """Return the rows that have all words of a text."""
        holds = np.zeros(self._rows, np.bool_)
        for stem in self._stems:
            terms = self._split_by(stem, text)
            if not terms:
                holds[:] = True
                continue
            try:
                holds[self.common_rows(terms)] = True
            except IndexError as error:
                raise damaged_row(error) from error
        return holds

    def synonyms_of(self, term: str, repeats: float, counts: Collection[str]) -> dict[str, Postings]:
        """Return the postings of the synonyms of a term that are no terms of the query themselves, which are `counts`.

        A synonym has SYNONYM_WEIGHT of its own weight, or of the term's weight if that is less.
        """
        own = self.postings(term, 1)
        most = math.inf if own is None else float(own.weight)
        others = (other for other in self.info.synonyms[term] if other not in counts)
        found = {other: self.postings(other, repeats * SYNONYM_WEIGHT, most) for other in others}
        return {other: postings for other, postings in found.items() if postings is not None}

    def completions(self, beginning: str, whole: Set[str], factor: float) -> dict[str, Postings]:
        """Return the postings of the most frequent terms that begin with a word, without `whole`, the word's own terms.

        A completion weighs at most `factor` times as much as the word itself. If no text has it, it weighs at most
        `factor` times as much as the most frequent completion: otherwise a rare one would come first. A code completes
        only the beginning of a code, because its texts have the words that it is made of too.
        """
        if len(beginning) < SHORTEST_BEGINNING:
            return {}
        terms, key = self._terms, beginning.encode()
        first, end = terms.place_for(key), terms.place_for(key + b"\xff")
        ends = self._ends[first : end + 1]
        offsets = check_ascending(ends, len(self._holders), f"{self.path}: postings").astype(np.intp)
        if self._view is not None:
            is_allowed = _among(self._view[0], self._holders[offsets[0] : offsets[-1]])
            offsets = np.concatenate([[0], np.cumsum(is_allowed)])[offsets - offsets[0]]
        uses = np.diff(offsets)
        if not set(MARKS_OF_CODES).intersection(key):
            begins = terms.offsets_of(first, end)
            part = terms.content[int(begins[0]) : int(begins[-1])]
            marks = begins[0] + np.flatnonzero(np.isin(part, [*MARKS_OF_CODES])).astype(np.uint64)
            uses[np.searchsorted(begins, marks, "right") - 1] = 0
        own = [place for term in whole if (place := self._number(term)) is not None and len(self.rows_of(term))]
        uses[[place - first for place in own if first <= place < end]] = 0
        if not uses.any():
            return {}
        most = max(float(self._postings_at(place).weight) for place in own or [first + int(uses.argmax())])
        places = [first + place for place in largest(uses, MOST_COMPLETIONS).tolist() if uses[place]]
        return {terms.text(place): self._postings_at(place, factor, most) for place in places}

    def has_word(self, word: str) -> bool:
        """Return whether a word of `words` is in a text that can be found, as far as the first texts with it show."""
        if self._view is None:
            return True
        rows = (row for term in self.terms_of(word) for row in self.rows_of(term)[:MOST_CHECKED].tolist())
        return any(word in (part for _, words in find_codes(self._view[1](row)) for part in words) for row in rows)

    @property
    def weight_of_unknown(self) -> float:
        """What a word that no text has would add to the score that a query can attain."""
        return UNKNOWN * _idf(self._count, 0)

    def counts_by_language(self, text: str) -> list[Counter[str]]:
        """Return the terms of a text, and how often it has each, for each language of the corpus."""
        return [Counter(self._split_by(stem, text)) for stem in self._stems]

    def terms_of(self, text: str) -> Mapping[str, int]:
        """Return the terms of a text in all languages of the corpus, and how often the text has each at most."""
        return reduce(or_, self.counts_by_language(text))

    def terms_by_language(self, *words: str) -> Iterator[list[str]]:
        """Yield the terms of some words in each language of the corpus."""
        return ([term for word in words for term in self._split_by(stem, word)] for stem in self._stems)

    def has_terms(self, word: str, terms: set[str]) -> bool:
        """Return whether a word has only terms that are among these."""
        return all(terms.issuperset(self._split_by(stem, word)) for stem in self._stems)

    def knows(self, word: str) -> bool:
        """Return whether the index has all terms of a word in one language of the corpus."""
        return any(all(self._number(term) is not None for term in own) for own in self.terms_by_language(word))

    def stems_of(self, word: str) -> Iterator[str]:
        """Yield the first term of a word in each language of the corpus."""
        return (term for stem in self._stems for term in self._split_by(stem, word)[:1])

    def _split_by(self, stem: Stem | None, text: str) -> list[str]:
        return split_terms(text, stem, is_query=True)

    def common_rows(self, terms: Collection[str]) -> AnyArray:
        """Return the rows that have all of these terms, ascending: (n,) uint32. There is at least one term."""
        held = []
        for term in dict.fromkeys(terms):
            held.append(self.rows_of(term))
            if not len(held[-1]):
                return held[-1]
        rows, *others = sorted(held, key=len)
        for more in others:
            rows = rows[_is_in(more, rows)]
        return rows

    def without(self, postings: Postings, text: str) -> Postings:
        """Return postings without those of the rows that have all words of a text."""
        lacks = np.ones(len(postings.rows), np.bool_)
        for terms in self.terms_by_language(text):
            has_all = np.ones(len(postings.rows), np.bool_)
            for term in terms:
                has_all &= _is_in(self.rows_of(term), postings.rows)
            lacks &= ~has_all
        return Postings(postings.rows[lacks], postings.impacts[lacks], postings.weight)

    def weight_of(self, term: str) -> np.float32:
        """Return the weight of a term, 0 if no text has it."""
        postings = self.postings(term)
        return np.float32(0) if postings is None else postings.weight

    def rows_of(self, term: str) -> AnyArray:
        """Return the rows that have a term, ascending: (n,) uint32."""
        postings = self.postings(term)
        if postings is None:
            return np.empty(0, np.uint32)
        return postings.rows

    def postings(self, term: str, repeats: float = 1, most: float = math.inf) -> Postings | None:
        """Return the postings of a term that is repeated, None if no text has it; its scale is at most `most`."""
        place = self._number(term)
        if place is None:
            return None
        found = self._postings_at(place, repeats, most)
        if not len(found.rows):
            return None
        return found

    def _number(self, term: str) -> int | None:
        key = term.encode()
        if len(key) <= LONGEST_KNOWN:
            return self._find(key)
        return self._terms.find(key)

    def _postings_at(self, place: int, factor: float = 1.0, most: float = math.inf) -> Postings:
        """Return the postings of the term with a number. Their weight is its scale, at most `most`, times `factor`."""
        begin, end = self._ends[place : place + 2].tolist()
        if not begin <= end <= len(self._holders):
            found = f"the postings of term {place} have the offsets {begin} and {end}"
            raise TensorsError(f"{self.path}: {found}, expected offsets up to {len(self._holders)}; {DAMAGED}")
        rows, impacts = self._holders[begin:end], self._impacts[begin:end]
        scale = float(self._scales[place])
        if self._view is not None:
            is_allowed = _among(self._view[0], rows)
            scale /= _idf(self._rows, len(rows))
            rows, impacts = rows[is_allowed], impacts[is_allowed].astype(np.float32)
            share = float(impacts.max(initial=0)) / LARGEST_IMPACT  # the largest impact can be that of another row
            impacts /= share or 1.0
            scale *= share * _idf(self._count, len(rows))
        return Postings(rows, impacts, np.float32(min(scale, most) * factor))


def _is_in(rows: AnyArray, sought: AnyArray) -> Mask:
    """Return which of the sought rows (n,) are among others; both ascend."""
    if not len(rows):
        return np.zeros(len(sought), np.bool_)
    found: Mask = rows.take(rows.searchsorted(sought), mode="clip") == sought
    return found


def _among(allowed: Mask, rows: AnyArray) -> Mask:
    """Return which rows of postings (n,) are allowed. Raises TensorsError if one is damaged."""
    try:
        among: Mask = allowed[rows]
    except IndexError as error:
        raise damaged_row(error) from error
    return among


def _idf(rows: int, count: int) -> float:
    """Return the weight of a term that `count` of the rows have."""
    return math.log1p((rows - count + 0.5) / (count + 0.5))
