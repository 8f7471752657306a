"""Texts to the counts of their terms, which semsearch/indexing/term_counts.py describes."""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from semsearch.engine.bundle import NO_STEMS
from semsearch.engine.keyword.analyzer import (
    IN_HEADING,
    IN_TEXT,
    Stem,
    find_stemmer,
    joined_codes,
    names_in,
    split_terms,
)
from semsearch.engine.tensors import AnyArray, Array
from semsearch.indexing.digests import Positions
from semsearch.indexing.term_counts import TermCounts, offsets_of, smallest

# Raise this number when the code finds other terms in a text: the next update then counts the terms of all texts.
COUNTING_VERSION = 3
TITLE_WEIGHT = 2  # number of times that a word of a title counts
SHORTEST_WORD = 3  # letters of a word that can replace a misspelled one
BLOCK_CHARACTERS = 1 << 20  # characters of the texts whose terms are sorted at a time: about 70 MB
REMEMBERED_TERMS = 1 << 17  # terms of the words that are not read again: about 40 MB


class KeywordText(NamedTuple):
    """A text as keyword search reads it."""

    text: str
    title: str = ""  # counts as if the text began with it TITLE_WEIGHT times
    language: str | None = None  # language of the stemmer, None for no stems
    names: Collection[str] = ()  # the terms of `heading_names`


def count_terms(texts: Iterable[KeywordText]) -> TermCounts:
    """Return the counts of texts.

    Only one of the texts is in memory. Each different term of a text takes some 10 bytes, each different term of all
    texts some 200.
    """
    counting = _Counting()
    for text in texts:
        counting.add(text)
    return counting.finish()


class _Numbers(dict[str, int]):
    """The numbers of what was read already; `read` returns the number of anything else."""

    def __init__(self, read: Callable[[str], int]) -> None:
        self._read = read

    def __missing__(self, key: str) -> int:
        number = self[key] = self._read(key)
        return number


class _Readings:
    """What the different words of texts are read as: blanks separate terms, so each word is read once.

    A word is here what is between two blanks. A reading has the numbers of its terms, and of the words that replace
    misspelled ones.
    """

    def __init__(self, terms: _Numbers, words: _Numbers) -> None:
        self._number_of_term, self._number_of_word = terms.__getitem__, words.__getitem__
        self._languages: dict[str | None, tuple[_Numbers, _Numbers]] = {}
        self.names = _Numbers(self._read_name)
        self.terms = array("I")  # number of each term of all readings, one reading after the other
        self.sizes = array("I")  # number of terms of each reading
        self.lengths = array("I")  # number of these that count towards the length of a text
        self.words = array("I")  # number of each word of all readings
        self.word_sizes = array("I")  # number of words of each reading

    def of_language(self, language: str | None) -> tuple[_Numbers, _Numbers]:
        """Return the readings of the words of titles in a language, and of those of its texts."""
        if language not in self._languages:
            read = partial(self._read_word, find_stemmer(language))
            self._languages[language] = _Numbers(partial(read, TITLE_WEIGHT)), _Numbers(partial(read, 1))
        return self._languages[language]

    def _read_word(self, stem: Stem | None, weight: int, word: str) -> int:
        terms = split_terms(word, stem) * weight
        length = len(terms)
        wholes = [whole for _, whole in joined_codes(word)]
        for whole in wholes:
            terms += split_terms(whole, stem)
        plain = terms if stem is None else [term for each in (word, *wholes) for term in split_terms(each)]
        words = [term for term in plain if len(term) >= SHORTEST_WORD and term.isalpha()]
        return self._add(terms, length, words)

    def _read_name(self, name: str) -> int:
        return self._add([name], 0, [])

    def _add(self, terms: Sequence[str], length: int, words: Sequence[str]) -> int:
        self.terms.extend(map(self._number_of_term, terms))
        self.words.extend(map(self._number_of_word, words))
        self.sizes.append(len(terms))
        self.lengths.append(length)
        self.word_sizes.append(len(words))
        return len(self.sizes) - 1


@dataclass(frozen=True, slots=True)
class _Block:
    """The postings of successive texts, sorted by the number of their term, then by row."""

    terms: Array[np.uint32]  # (n,): numbers of the terms
    sizes: Array[np.uint32]  # (n,): number of postings of each term
    rows: Array[np.uint32]  # (postings,)
    counts: AnyArray  # (postings,)


class _Counting:
    """Counts the terms of texts, a block of texts at a time."""

    def __init__(self) -> None:
        self._terms = _Numbers(lambda _: len(self._terms))
        self._words = _Numbers(lambda _: len(self._words))
        self._word_counts = np.zeros(0, np.int64)
        self._languages = Counter[str]()
        self._lengths = array("I")
        self._blocks: list[_Block] = []
        self._readings = _Readings(self._terms, self._words)
        self._begin_block()

    def _begin_block(self) -> None:
        self._characters = 0
        self._read = array("I")  # number of each reading of the block's texts
        self._sizes = array("I")  # number of readings of each text

    def add(self, added: KeywordText) -> None:
        """Add the next text."""
        text, title, language, names = added
        before = len(self._read)
        of_title, of_text = self._readings.of_language(language)
        self._read.extend(map(of_title.__getitem__, title.split()))
        self._read.extend(map(of_text.__getitem__, text.split()))
        marked = [IN_HEADING + name for name in names] + [IN_TEXT + name for name in names_in(text)]
        self._read.extend(map(self._readings.names.__getitem__, marked))
        self._sizes.append(len(self._read) - before)
        self._languages[language or NO_STEMS] += 1
        self._characters += len(title) + len(text)
        if self._characters >= BLOCK_CHARACTERS:
            self._end_block()

    def _end_block(self) -> None:
        readings = self._readings
        read, row_sizes = _integers(self._read), _integers(self._sizes)
        all_sizes = _integers(readings.sizes)
        sizes = all_sizes[read]
        terms = _integers(readings.terms)[_places(offsets_of(all_sizes)[read], sizes)]
        rows = np.repeat(np.repeat(np.arange(len(row_sizes)), row_sizes), sizes)
        # one number for a term and a row, so that sorting the numbers brings a term's rows together
        bits = len(row_sizes).bit_length()
        pairs, counts = np.unique((terms << bits) | rows, return_counts=True)
        numbers, postings = np.unique(pairs >> bits, return_counts=True)
        own_rows = (pairs & ((1 << bits) - 1)) + len(self._lengths)
        block = _Block(
            numbers.astype(np.uint32), postings.astype(np.uint32), own_rows.astype(np.uint32), smallest(counts)
        )
        self._blocks.append(block)
        lengths = offsets_of(_integers(readings.lengths)[read])
        self._lengths.extend(np.diff(lengths[offsets_of(row_sizes)]).tolist())
        times = np.repeat(np.bincount(read, minlength=len(all_sizes)), _integers(readings.word_sizes))
        word_counts = np.bincount(_integers(readings.words), times, len(self._words)).astype(np.int64)
        word_counts[: len(self._word_counts)] += self._word_counts
        self._word_counts = word_counts
        if len(readings.terms) > REMEMBERED_TERMS:
            self._readings = _Readings(self._terms, self._words)
        self._begin_block()

    def finish(self) -> TermCounts:
        """Return the counts of all texts that were added."""
        self._end_block()
        terms, words, languages = sorted(self._terms), sorted(self._words), sorted(self._languages)
        order = np.array([self._terms[term] for term in terms], np.intp)
        sizes = np.zeros(len(terms), np.intp)
        for block in self._blocks:
            sizes[block.terms] += block.sizes
        postings = offsets_of(sizes[order])
        next_places = np.empty(len(terms), np.intp)  # place of the next posting of each term
        next_places[order] = postings[:-1]
        rows = np.empty(postings[-1], np.uint32)
        counts = np.empty(postings[-1], np.result_type(*(block.counts for block in self._blocks)))
        self._blocks.reverse()
        while self._blocks:
            block = self._blocks.pop()
            places = _places(next_places[block.terms], block.sizes)
            rows[places], counts[places] = block.rows, block.counts
            next_places[block.terms] += block.sizes
        return TermCounts(
            terms=_lines(terms),
            postings=postings.astype(np.uint64),
            rows=rows,
            counts=counts,
            lengths=np.array(self._lengths, np.uint32),
            words=_lines(words),
            word_counts=self._word_counts[np.array([self._words[word] for word in words], np.intp)],
            languages=_lines(languages),
            language_counts=np.array([self._languages[language] for language in languages], np.int64),
        )


def _integers(numbers: "array[int]") -> Positions:
    return np.array(numbers, np.intp)


def _places(begins: Positions, sizes: AnyArray) -> Positions:
    """Return the places in ranges that begin there and have these sizes, one range after the other."""
    offsets = offsets_of(sizes)
    return np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)


def _lines(strings: Iterable[str]) -> Array[np.uint8]:
    return np.frombuffer("".join(f"{string}\n" for string in strings).encode(), np.uint8)
