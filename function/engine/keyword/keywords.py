"""Words to hits: BM25 over postings that the export has scored already and that are memory-mapped.

BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) adds up an impact of each of the query's
terms: idf(term) * tf / (tf + K1 * (1 - B + B * length / mean length)). tf says how often the term occurs in the row,
and idf is log(1 + (rows - n + 0.5) / (n + 0.5)) for a term that n rows have, as in Lucene. An impact depends on nothing
in the query, so the export stores it, in 8 bit with a scale for each term.

    terms, terms.offsets        UTF-8 bytes of the terms, sorted by byte, and offsets (terms + 1,) uint64
    postings.offsets            where the postings of each term begin (terms + 1,) uint64
    rows, impacts               the row and the impact of each posting, uint32 and uint8; the rows of a term ascend
    scales                      the scale of each term's impacts (terms,) float32

A query reads the postings of its own terms and no others: a term is found by binary search over the mapped bytes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from function.engine.arrays import AnyArray, Array
from function.engine.bundle import KeywordsInfo
from function.engine.keyword.analyzer import VERSION, Stem, find_stemmer, quoted_parts, split_terms
from function.engine.semantic.index import DECIMALS, Hit, Mask, Rows
from function.engine.tensors import TensorsError, map_tensors

if TYPE_CHECKING:
    from function.engine.keyword.corrections import Correction

K1 = 1.2  # saturation: the higher, the more a repeated term counts; K1 and B are Lucene's defaults
B = 0.75  # length normalization: 0 ignores the length of a text, 1 divides by it
MOST_TERMS = 1_000  # maximum terms of a query; further ones are ignored, so that no request takes seconds
KINDS = {  # dtypes of the tensors
    "terms": "uint8",
    "terms.offsets": "uint64",
    "postings.offsets": "uint64",
    "rows": "uint32",
    "impacts": "uint8",
    "scales": "float32",
}


@dataclass(frozen=True)
class Matches:
    """The BM25 score of every row for one query.

    scores is (rows,) float32: 0 where no term of the query occurs, or where `allowed` is false. allowed is (rows,)
    bool, None where every row may be found. is_truncated: the query had more than MOST_TERMS terms. corrected has the
    terms that replace each misspelled word.
    """

    scores: Array[np.float32]
    allowed: Mask | None
    is_truncated: bool
    corrected: "Mapping[str, Correction]"

    def within(self, allowed: Mask) -> "Matches":
        """Return the matches among these rows alone; allowed is (rows,) bool."""
        return replace(self, scores=np.where(allowed, self.scores, np.float32(0)), allowed=allowed)

    def best(self, top_k: int, allowed: Mask | None = None) -> list[Hit]:
        """Return the top_k rows with the highest score above 0, best first, or fewer if there are fewer.

        Rows with equal scores are in the order of the corpus. allowed is (rows,) bool: only rows where it is true are
        returned; None means the rows that `match` allowed.
        """
        if allowed is not None:
            return self.within(allowed).best(top_k)
        return [Hit(int(row), round(float(self.scores[row]), DECIMALS)) for row in self.best_rows(top_k)]

    def best_rows(self, top_k: int) -> Rows:
        """Return the rows of `best`."""
        rows = np.flatnonzero(self.scores)
        scores = self.scores[rows]
        if top_k < len(rows):
            rows = rows[scores >= np.partition(scores, -top_k)[-top_k]]
        order = np.argsort(-self.scores[rows], kind="stable")
        return rows[order[:top_k]]

    @cached_property
    def highest(self) -> float:
        """Return the highest score, 0 if no row has a term of the query."""
        return float(self.scores.max(initial=0))


class Keywords:
    """The corpus's terms and their postings, memory-mapped."""

    def __init__(self, path: Path, info: KeywordsInfo, rows: int) -> None:
        """Map a keywords.safetensors; info describes it, and rows is the number of rows of the corpus.

        Raises TensorsError if the file is not whole, holds something else or is of a newer version.
        """
        if info.analyzer > VERSION:
            raise TensorsError(
                f"{path}: terms of version {info.analyzer}, this code reads versions up to {VERSION}; deploy a newer "
                "function, or export the texts with this version"
            )
        tensors = map_tensors(path)
        found = {name: (tensor.dtype.name, *tensor.shape) for name, tensor in tensors.items()}
        lengths = {
            "terms": tensors["terms"].size if "terms" in tensors else 0,
            "terms.offsets": info.terms + 1,
            "postings.offsets": info.terms + 1,
            "rows": info.postings,
            "impacts": info.postings,
            "scales": info.terms,
        }
        expected = {name: (KINDS[name], length) for name, length in lengths.items()}
        if found != expected:
            raise TensorsError(f"{path}: holds {found}, expected {expected}; run `python -m export` again")
        for name in ("terms", "postings"):
            offsets, length = tensors[f"{name}.offsets"], lengths["terms" if name == "terms" else "rows"]
            if int(offsets[0]) != 0 or int(offsets[-1]) != length:
                raise TensorsError(
                    f"{path}: offsets of {name} go from {offsets[0]} to {offsets[-1]}, expected 0 to {length}; "
                    "run `python -m export` again"
                )
        self.info = info
        self._tensors = tensors
        self._terms = range(info.terms)
        self._rows = rows
        self._stems = [find_stemmer(language) for language in info.stemmers]

    def match(self, text: str, allowed: Mask | None = None) -> Matches:
        """Return the scores of all rows for the terms of a text; a repeated term counts as often as it is repeated.

        If the rows have several languages, a word of the text has the stem of each, because a query does not say its
        language. Every word between quotation marks must occur in a row, in any order. allowed is (rows,) bool: rows
        where it is false are not found; None allows every row.
        """
        quoted = " ".join(quoted_parts(text))
        required = set(self._split(quoted))
        terms = self._split(text)
        scores, unknown = np.zeros(self._rows, np.float32), set[str]()
        for term, repeats in islice(terms.items(), MOST_TERMS):  # a text with required terms is never as long
            rows, impacts, scale = self._postings(term)
            if not len(rows):
                unknown.add(term)
            scores[rows] += impacts * np.float32(scale * repeats)
        if required:
            holds = np.logical_or.reduce([self._rows_with(self._split_by(stem, quoted)) for stem in self._stems])
            allowed = holds if allowed is None else allowed & holds
        corrected = self._correct(text, unknown - required, scores) if unknown - required else {}
        if allowed is not None:
            scores[~allowed] = 0
        return Matches(scores, allowed, len(terms) > MOST_TERMS, corrected)

    def _correct(self, text: str, unknown: set[str], scores: Array[np.float32]) -> "dict[str, Correction]":
        """Add the scores of the terms nearest to the misspelled words of a text, and return these terms for each word.

        Of the terms of a word, a row counts the one that scores most.
        """
        from function.engine.keyword.corrections import find_corrections  # only a misspelled word needs it

        corrected = {}
        for word, repeats, correction in find_corrections(
            text, unknown, self._tensors, self._stems, self.info.analyzer
        ):
            best = np.zeros_like(scores)
            for term in correction:
                rows, impacts, scale = self._postings(term)
                best[rows] = np.maximum(best[rows], impacts * np.float32(scale * repeats))
            scores += best
            corrected[word] = correction
        return corrected

    def _split(self, text: str) -> Mapping[str, int]:
        """Return the terms of a text in each language of the corpus, and how often the text has each."""
        return reduce(or_, [Counter(self._split_by(stem, text)) for stem in self._stems])

    def _split_by(self, stem: Stem | None, text: str) -> list[str]:
        return split_terms(text, stem, self.info.analyzer, is_query=True)

    def _rows_with(self, terms: Collection[str]) -> Mask:
        """Return which rows have all these terms, (rows,) bool."""
        holds = np.ones(self._rows, np.bool_)
        for term in terms:
            has_term = np.zeros(self._rows, np.bool_)
            has_term[self.rows_of(term)] = True
            holds &= has_term
        return holds

    def rows_of(self, term: str) -> AnyArray:
        """Return the rows that have a term, ascending: (n,) uint32."""
        return self._postings(term)[0]

    def _postings(self, term: str) -> tuple[AnyArray, AnyArray, float]:
        """Return the rows (n,) uint32 of a term, their impacts (n,) uint8, and the impacts' scale."""
        key = term.encode()
        place = bisect_left(self._terms, key, key=self._term)
        begin = end = 0
        scale = 0.0
        if place < len(self._terms) and self._term(place) == key:
            begin, end = map(int, self._tensors["postings.offsets"][place : place + 2])
            scale = float(self._tensors["scales"][place])
        return self._tensors["rows"][begin:end], self._tensors["impacts"][begin:end], scale

    def _term(self, place: int) -> bytes:
        begin, end = self._tensors["terms.offsets"][place : place + 2]
        return self._tensors["terms"][int(begin) : int(end)].tobytes()
