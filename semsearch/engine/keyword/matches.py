"""The rows that have words of a query: their BM25 scores, and the best rows without reading all postings.

A frequent term has many postings and adds little to a score. The best rows of a long query are therefore found as in
MaxScore (Turtle and Flood, Query Evaluation: Strategies and Optimizations, 1995):

1. The postings of the rarest terms are added up. The rows that are then the best are looked up in all other terms.
   Their scores are a threshold: other rows must reach it too.
2. When all terms that remain cannot add up to the threshold, only rows with a high enough sum can still reach it. These
   candidates are looked up in the remaining terms, one term after the other, and each time fewer of them are left.
3. The scores of the last candidates are added up in the order of the query, because the order of float32 additions
   changes the last bits. So hits and scores are those of a search that reads every posting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from semsearch.engine.bundle import KEYWORDS
from semsearch.engine.hits import DECIMALS, Hit, Mask, Rows, Scored, largest
from semsearch.engine.tensors import DAMAGED, AnyArray, Array, TensorsError

RowScores = Array[np.float32]
Correction = Mapping[str, Sequence[str]]  # the words that replace a word of a query, each with its terms

LARGEST_IMPACT = 255  # largest impact in 8 bit
FEW_POSTINGS = 100_000  # reading this number of postings takes less time than finding out which can be left out
POSTINGS_PER_LOOKUP = 16  # a row that is looked up in a term takes as long as this number of postings that are added
ROWS_PER_CHECK = 16  # the candidates are counted after reading a posting for each 16 rows of the corpus
ROWS_PER_CANDIDATE = 32  # with more candidates, finding their rows takes longer than reading some more postings
FIRST_ESTIMATE = 100  # the threshold is first estimated after reading this many postings for each hit
ESTIMATE_AGAIN = 8  # the threshold is estimated again when 8 times as many postings have been read
ROWS_PER_POSTING = 8  # with fewer rows, finding the best among all is faster than among those with a score
EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows of a term, memory-mapped: rows (n,) uint32 ascend, impacts is (n,) uint8.

    A row's part of the score is its impact * weight.
    """

    rows: AnyArray
    impacts: AnyArray
    weight: np.float32

    def read(self) -> tuple[Rows, RowScores]:
        """Return all rows, (n,) intp, and their parts of the score."""
        return self.rows.astype(np.intp), self.impacts * self.weight  # np.add.at is 3 times as fast with intp

    def look_up(self, rows: AnyArray) -> RowScores:
        """Return the parts of the scores of these rows, (n,), which are uint32: 0 for a row without the term."""
        places = self.rows.searchsorted(rows)
        is_found = self.rows.take(places, mode="clip") == rows
        scores: RowScores = self.impacts.take(places, mode="clip") * self.weight
        scores *= is_found
        return scores


def damaged_row(error: IndexError) -> TensorsError:
    """Return the error for a posting whose row is none of the corpus: NumPy finds it when the row is used."""
    return TensorsError(f"{KEYWORDS}: a posting has a row that is not there ({error}); {DAMAGED}")


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a query and its synonyms, or what replaces a misspelled word: a row counts the one that scores most.

    Each of these alternatives has at least one posting.
    """

    alternatives: Sequence[Postings]

    def __len__(self) -> int:
        """Return the number of postings."""
        return sum(len(postings.rows) for postings in self.alternatives)

    @property
    def bound(self) -> float:
        """Return what this term adds to a score at most."""
        return max(float(postings.weight) for postings in self.alternatives) * LARGEST_IMPACT

    def add_to(self, scores: RowScores) -> None:
        """Add this term's part to the scores of all rows, (rows,). Raises TensorsError if a row of it is damaged."""
        try:
            if len(self.alternatives) == 1:
                np.add.at(scores, *self.alternatives[0].read())
                return
            best = np.zeros_like(scores)
            for postings in self.alternatives:
                np.maximum.at(best, *postings.read())
            scores += best
        except IndexError as error:
            raise damaged_row(error) from error

    def look_up(self, rows: AnyArray) -> RowScores:
        """Return this term's parts of the scores of some rows, (n,) uint32."""
        found = self.alternatives[0].look_up(rows)
        for postings in self.alternatives[1:]:
            found = np.maximum(found, postings.look_up(rows))
        return found


@dataclass(frozen=True)
class Matches:
    """The BM25 scores of the rows of a corpus for one query, computed as far as they are needed.

    terms are in the order of the query, rows is the number of rows of the corpus. allowed is (rows,) bool, None where
    every row may be found. is_truncated: the query had more terms than a search reads. corrected has the terms that
    replace each misspelled word. added has the other terms that the query does not have itself, such as synonyms and
    the words that its last one begins. attainable is the score of a text in which every word of the query adds the most
    that it adds to any text.
    """

    terms: Sequence[Term]
    rows: int
    allowed: Mask | None
    is_truncated: bool
    corrected: Mapping[str, Correction]
    added: frozenset[str]
    attainable: float
    whole: "Matches | None" = None  # these matches among all rows, None if they are made when they are needed

    @cached_property
    def among_all(self) -> "Matches":
        """These matches among all rows."""
        if self.whole is not None:
            return self.whole
        if self.allowed is None:
            return self
        return replace(self, allowed=None)

    def within(self, allowed: Mask) -> "Matches":
        """Return the matches among these rows alone; allowed is (rows,) bool."""
        return replace(self, allowed=allowed, whole=self.among_all)

    def best(self, top_k: int, allowed: Mask | None = None) -> list[Hit]:
        """Return the top_k rows with the highest score above 0, best first, or fewer if there are fewer.

        Rows with equal scores are in the order of the corpus. allowed is (rows,) bool: only rows where it is true are
        returned; None means the rows that `match` allowed.
        """
        if allowed is not None:
            return self.within(allowed).best(top_k)
        return self.scored(top_k).hits()

    def scored(self, top_k: int) -> Scored:
        """Return the rows and the scores of `best`."""
        rows = self.best_rows(top_k)
        return Scored(rows, self.scores_of(rows).astype(np.float64).round(DECIMALS))

    def best_rows(self, top_k: int) -> Rows:
        """Return the rows of `best`."""
        postings = sum(map(len, self.terms))
        if "scores" not in self.among_all.__dict__ and postings > max(FEW_POSTINGS, POSTINGS_PER_LOOKUP * top_k):
            rows = self._candidates(top_k)
            scores = self.scores_of(rows)
        else:
            is_dense = self.allowed is None and postings * ROWS_PER_POSTING > self.rows
            if is_dense:
                rows = largest(self.scores, top_k)
            else:
                rows = np.flatnonzero(self.scores > 0)  # a quarter of the time of finding those that are not 0
            scores = self.scores[rows]
        chosen = largest(scores, top_k)
        chosen = chosen[scores[chosen] > 0]
        return rows[chosen[np.argsort(-scores[chosen], kind="stable")]]

    @cached_property
    def scores(self) -> RowScores:
        """The scores of all rows, (rows,): 0 for a row without a term, or that is not allowed. Reads all postings."""
        if self.allowed is not None:
            return np.where(self.allowed, self.among_all.scores, np.float32(0))
        scores = np.zeros(self.rows, np.float32)
        for term in self.terms:
            term.add_to(scores)
        return scores

    def scores_of(self, rows: Rows) -> RowScores:
        """Return the scores of some rows, (n,), as `scores` has them."""
        if "scores" in self.among_all.__dict__:
            return self.scores[rows]
        scores, numbers = np.zeros(len(rows), np.float32), rows.astype(np.uint32)
        for term in self.terms:
            scores += term.look_up(numbers)
        if self.allowed is None:
            return scores
        return np.where(self.allowed[rows], scores, np.float32(0))

    @cached_property
    def highest(self) -> float:
        """The highest score of all rows, also of those that are not allowed; 0 if no row has a term of the query."""
        among_all = self.among_all
        return float(among_all.scores_of(among_all.best_rows(1)).max(initial=0))

    def _candidates(self, top_k: int) -> Rows:
        """Return rows, ascending, that include the top_k best rows with a score above 0."""
        allowed = self.allowed
        terms = sorted(self.terms, key=len)
        sizes, bounds = np.array([len(term) for term in terms]), np.array([term.bound for term in terms])
        if allowed is not None and np.count_nonzero(allowed) * POSTINGS_PER_LOOKUP * len(terms) < sizes.sum():
            return np.flatnonzero(allowed)
        rounding = (len(terms) + 2) * EPSILON * float(bounds.sum())  # largest difference of one sum in two orders
        left, rests = _sums_from(sizes), _sums_from(bounds)  # postings and largest score of each term and later ones
        sums, threshold = np.zeros(self.rows, np.float32), 0.0
        unchecked, next_estimate = 0, FIRST_ESTIMATE * top_k
        for number, term in enumerate(terms):
            if unchecked * ROWS_PER_CHECK > self.rows and rests[number] < threshold:
                is_high = sums >= threshold - rests[number]
                if allowed is not None:
                    is_high &= allowed
                if np.count_nonzero(is_high) * ROWS_PER_CANDIDATE < self.rows:
                    rows = np.flatnonzero(is_high)
                    found = sums[rows]
                    threshold = max(threshold, _threshold(terms[number:], rows, found, top_k) - rounding)
                    is_high = found >= threshold - rests[number]
                    if np.count_nonzero(is_high) * POSTINGS_PER_LOOKUP < left[number]:
                        return _narrow(terms[number:], rests[number:], rows[is_high], found[is_high], threshold)
                unchecked = 0
            term.add_to(sums)
            unchecked += len(term)
            if len(term) >= top_k and left[0] - left[number + 1] >= next_estimate:
                rows = term.alternatives[0].rows
                if allowed is not None:
                    rows = rows[allowed[rows]]
                estimate = _threshold(terms[number + 1 :], rows, sums[rows], top_k) - rounding
                threshold, next_estimate = max(threshold, estimate), next_estimate * ESTIMATE_AGAIN
        is_high = sums > max(0.0, threshold - rounding)
        return np.flatnonzero(is_high if allowed is None else is_high & allowed)


def _sums_from(values: AnyArray) -> list[float]:
    """Return the sum of each value and all later ones, and a 0 at the end: n + 1 sums for (n,) values."""
    return [*np.cumsum(values[::-1])[::-1].tolist(), 0]


def _threshold(terms: Sequence[Term], rows: AnyArray, sums: RowScores, top_k: int) -> float:
    """Return a score that top_k of these rows (n,) reach, 0 if there are fewer; their sums (n,) lack these terms."""
    if top_k > len(rows):
        return 0.0
    best = largest(sums, top_k)
    rows, scores = rows[best].astype(np.uint32), sums[best]
    for term in terms:
        scores += term.look_up(rows)
    return float(scores.min())


def _narrow(terms: Sequence[Term], rests: Sequence[float], rows: Rows, sums: RowScores, threshold: float) -> Rows:
    """Return the rows (n,) that can reach the threshold; sums (n,) lack these terms, and rests are their bounds."""
    for number, term in enumerate(terms, 1):
        sums += term.look_up(rows.astype(np.uint32))
        is_high = sums >= threshold - rests[number]
        rows, sums = rows[is_high], sums[is_high]
    return rows
