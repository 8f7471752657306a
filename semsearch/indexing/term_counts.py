"""How often each text has each term: arrays whose update costs little where few texts have changed.

semsearch/indexing/counting.py counts the terms of texts, and semsearch/indexing/keywords.py makes the postings of
keyword search from the counts.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Self

import numpy as np

from semsearch.engine.tensors import AnyArray, Array
from semsearch.indexing.digests import Positions

SORTED_AT_ONCE = 1 << 20  # postings that are sorted at a time: about 70 MB
COUNTS_PREFIX = "terms."  # before the names of the arrays in a file
LINE_FEED = b"\n"


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each text has each term, and the words and languages of all texts.

    Terms, words and languages are UTF-8 bytes, sorted, each followed by a line feed. A posting is a row that has a
    term. The arrays can be memory-mapped.
    """

    terms: Array[np.uint8]
    postings: Array[np.uint64]  # (terms + 1,): where the postings of each term begin
    rows: Array[np.uint32]  # (postings,): the row of each posting; the rows of a term ascend
    counts: AnyArray  # (postings,): how often the row has the term, in the smallest unsigned dtype that holds them
    lengths: Array[np.uint32]  # (rows,): number of terms of the text itself and its title, for BM25
    words: Array[np.uint8]  # words that replace misspelled ones
    word_counts: Array[np.int64]  # (words,): how often the texts and titles have each word
    languages: Array[np.uint8]  # languages of the stemmers, NO_STEMS for none
    language_counts: Array[np.int64]  # (languages,): number of texts in each language

    def tensors(self) -> dict[str, AnyArray]:
        """Return the arrays by the names that they have in a file."""
        return {COUNTS_PREFIX + field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, AnyArray]) -> Self:
        """Return the counts whose arrays are among the tensors of a file."""
        return cls(**{field.name: tensors[COUNTS_PREFIX + field.name] for field in fields(cls)})


def update_counts(older: TermCounts, older_rows: Positions, new: TermCounts, removed: TermCounts) -> TermCounts:
    """Return the counts of rows of which some are older ones, with the arrays that `count_terms` makes of all of them.

    older_rows is (rows,): the older row that each row is, -1 for a new one. No older row occurs twice. new has the
    counts of the new rows, in their order, and removed has those of the older rows that do not occur.
    """
    is_new = older_rows < 0
    if is_new.all():
        return new
    lengths = np.empty(len(older_rows), np.uint32)
    lengths[is_new], lengths[~is_new] = new.lengths, older.lengths[older_rows[~is_new]]
    words = _update(older=_words_of(older), new=_words_of(new), removed=_words_of(removed))
    languages = _update(older=_languages_of(older), new=_languages_of(new), removed=_languages_of(removed))
    terms = _update(older=_terms_of(older), new=_terms_of(new), removed=_terms_of(removed))
    kept_rows = np.full(len(older.lengths), -1, np.intp)
    kept_rows[older_rows[~is_new]] = np.flatnonzero(~is_new)
    kept = _Moved(older, terms.older_places, kept_rows)
    added = _Moved(new, terms.new_places, np.flatnonzero(is_new))
    postings = offsets_of(terms.tally.counts)
    rows, counts = _merge(kept, added, postings, len(lengths))
    return TermCounts(
        terms=terms.tally.lines,
        postings=postings.astype(np.uint64),
        rows=rows,
        counts=counts,
        lengths=lengths,
        words=words.tally.lines,
        word_counts=words.tally.counts,
        languages=languages.tally.lines,
        language_counts=languages.tally.counts,
    )


@dataclass(frozen=True, slots=True)
class _Tally:
    """Different strings, sorted by their bytes, and how often each occurs."""

    lines: Array[np.uint8]  # the bytes of all strings, each with a line feed
    counts: Array[np.int64]  # (strings,)

    def strings(self) -> list[bytes]:
        """Return the strings without their line feeds."""
        return self.lines.tobytes().split(LINE_FEED)[:-1]


def _words_of(counts: TermCounts) -> _Tally:
    return _Tally(counts.words, counts.word_counts)


def _languages_of(counts: TermCounts) -> _Tally:
    return _Tally(counts.languages, counts.language_counts)


def _terms_of(counts: TermCounts) -> _Tally:
    return _Tally(counts.terms, sizes_of(counts.postings))


@dataclass(frozen=True, slots=True)
class _Updated:
    """A tally that was made from an older one and a new one, and the places of their strings in it, which ascend."""

    tally: _Tally
    older_places: Positions  # (older strings,): for one that is gone, the place of the next one
    new_places: Positions  # (new strings,)


def _update(*, older: _Tally, new: _Tally, removed: _Tally) -> _Updated:
    """Add one tally to an older one and subtract another one from it. A string that then does not occur is gone."""
    known, wanted = older.strings(), new.strings()
    found = _find(known, wanted)
    is_known = np.array([known[at : at + 1] == [string] for string, at in zip(wanted, found, strict=True)], np.bool_)
    counts = older.counts.copy()
    counts[_find(known, removed.strings())] -= removed.counts
    counts[found[is_known]] += new.counts[is_known]
    stays = counts > 0
    older_sizes, new_sizes = line_sizes(older.lines), line_sizes(new.lines)
    stayed = offsets_of(stays)  # for each older string, the number of those before it that stay
    inserted = stayed[found[~is_known]]
    lines = np.insert(
        older.lines[np.repeat(stays, older_sizes)],
        np.repeat(offsets_of(older_sizes[stays])[inserted], new_sizes[~is_known]),
        new.lines[np.repeat(~is_known, new_sizes)],
    )
    tally = _Tally(lines, np.insert(counts[stays], inserted, new.counts[~is_known]))
    older_places = stayed[:-1] + np.searchsorted(inserted, stayed[:-1], side="right")
    new_places = np.empty(len(wanted), np.intp)
    new_places[is_known] = older_places[found[is_known]]
    new_places[~is_known] = inserted + np.arange(len(inserted))
    return _Updated(tally, older_places, new_places)


def _find(known: Sequence[bytes], wanted: Iterable[bytes]) -> Positions:
    """Return where each wanted string is in a sorted list, or where it would be inserted."""
    return np.array([bisect_left(known, string) for string in wanted], np.intp)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Counts, and what their terms and rows are in others."""

    counts: TermCounts
    terms: Positions  # (terms,): the place of each term in the others; they ascend
    rows: Positions  # (rows,): the row in the others, -1 for one that is gone

    def between(self, first: int, last: int, bits: int) -> tuple[Positions, AnyArray]:
        """Return the postings of terms from `first` on and before `last`, and their counts: (n,) each.

        A posting is one number: the place of the term, then the row in this number of bits.
        """
        begin, end = np.searchsorted(self.terms, [first, last])
        postings = self.counts.postings[begin : end + 1]
        part = slice(int(postings[0]), int(postings[-1]))
        rows = self.rows[self.counts.rows[part]]
        numbers = np.repeat(self.terms[begin:end] << bits, sizes_of(postings)) | rows
        return numbers[rows >= 0], self.counts.counts[part][rows >= 0]


def _merge(kept: _Moved, added: _Moved, postings: Positions, rows: int) -> tuple[Array[np.uint32], AnyArray]:
    """Return the rows and the counts of all postings; those of each term begin at `postings`, (terms + 1,)."""
    bits = rows.bit_length()
    all_rows = np.empty(postings[-1], np.uint32)
    all_counts = np.empty(postings[-1], np.result_type(kept.counts.counts, added.counts.counts))
    for first, last in term_blocks(postings):
        (kept_numbers, kept_counts), (numbers, counts) = (each.between(first, last, bits) for each in (kept, added))
        joined = np.concatenate([kept_numbers, numbers])
        order = np.argsort(joined, kind="stable")  # quick for two parts that ascend
        block = slice(postings[first], postings[last])
        all_rows[block] = joined[order] & ((1 << bits) - 1)
        all_counts[block] = np.concatenate([kept_counts, counts])[order]
    return all_rows, smallest(all_counts)


def term_blocks(postings: AnyArray) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms that have SORTED_AT_ONCE postings together, or a little more.

    postings is (terms + 1,): where the postings of each term begin.
    """
    starts = np.unique(postings[1:] // SORTED_AT_ONCE, return_index=True)[1]
    return pairwise([*map(int, starts), len(postings) - 1])


def offsets_of(sizes: AnyArray) -> Positions:
    """Return where each of successive ranges begins and the last one ends: (sizes + 1,) intp."""
    offsets = np.zeros(len(sizes) + 1, np.intp)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def sizes_of(offsets: AnyArray) -> Positions:
    """Return the sizes of successive ranges: (offsets - 1,) intp."""
    signed = offsets.astype(np.intp)
    return signed[1:] - signed[:-1]


def line_sizes(lines: Array[np.uint8]) -> Positions:
    """Return the number of bytes of each line, with its line feed: (lines,) intp."""
    ends = np.flatnonzero(lines == ord(LINE_FEED)) + 1
    return sizes_of(np.concatenate([[0], ends]))


def smallest(counts: AnyArray) -> AnyArray:
    """Return counts in the smallest unsigned dtype that holds them."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)), copy=False)
