"""What every search returns and shares: hits, scored rows, masks of rows, and the choice of the largest scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from semsearch.engine.tensors import AnyArray, Array

Rows = Array[np.intp]
Mask = Array[np.bool_]  # (rows,): the rows that a search may return

MOST_HITS = 100  # maximum results of one request
DECIMALS = 6  # decimals of a score; further digits are rounding noise of float32 sums
SAMPLE = 1_024  # values that a threshold is guessed from
# A threshold is guessed so that about SURPLUS * count values pass it. With a smaller factor, a guess would often let
# fewer than `count` pass, and would have to be repeated.
SURPLUS = 1.25


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of the corpus and its score to six decimals. The score of an index is the cosine to the query, -1 to 1.

    If several searches contributed to the score, `scores` has each one's own score by the name of the search.
    """

    row: int
    score: float
    scores: dict[str, float] | None = None


# Returns the first hits of a ranking among the rows of a mask, or fewer if there are fewer; None means all its rows.
Find = Callable[[int, Mask | None], list[Hit]]


class Scored(NamedTuple):
    """Rows (n,), their scores (n,) float64, and the scores (n,) float64 of several searches by their names, if any."""

    rows: Rows
    scores: Array[np.float64]
    parts: Mapping[str, Array[np.float64]] = {}

    def take(self, places: Array[np.intp]) -> "Scored":
        """Return the rows at some places (m,) of these, in this order."""
        return Scored(self.rows[places], self.scores[places], {name: own[places] for name, own in self.parts.items()})

    def hits(self) -> list[Hit]:
        """Return the rows as hits."""
        if not self.parts:
            return list(map(Hit, self.rows.tolist(), self.scores.tolist()))
        parts = zip(*(own.tolist() for own in self.parts.values()), strict=True)
        scores = (dict(zip(self.parts, own, strict=True)) for own in parts)
        return list(map(Hit, self.rows.tolist(), self.scores.tolist(), scores))


# Returns about the first rows of a ranking, best first.
FindRows = Callable[[int], Scored]


def largest(values: AnyArray, count: int) -> Array[np.intp]:
    """Return the places of the `count` largest values, ascending; of equal values the first are taken.

    values is (n,); all n places are returned if there are no more. A sample of the values gives a threshold that a
    little more than `count` of them should pass, and only those are compared with each other. If too few pass, all
    values are compared.
    """
    if count >= len(values):
        return np.arange(len(values))
    step = len(values) // SAMPLE
    if step > 1:
        sample = values[::step]
        rank = min(len(sample), int(SURPLUS * count / step) + 8)
        passing = np.flatnonzero(values >= np.partition(sample, -rank)[-rank])
        if len(passing) >= count:
            return passing[_largest(values[passing], count)]
    return _largest(values, count)


def _largest(values: AnyArray, count: int) -> Array[np.intp]:
    if values.dtype == np.uint16:
        values = values.astype(np.int32)  # NumPy partitions them faster
    least = np.partition(values, -count)[-count]
    chosen = values >= least
    surplus = int(np.count_nonzero(chosen)) - count
    if surplus:
        chosen[np.flatnonzero(values == least)[-surplus:]] = False
    return np.flatnonzero(chosen)
