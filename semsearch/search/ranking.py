"""The ranking of the texts for a query: a class for each mode, and a ranking with another order of the first hits.

A ranking is not computed when it is made: its methods search as deep as they are asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from semsearch.engine.hits import Find, FindRows, Hit, Mask, Scored
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Index

if TYPE_CHECKING:
    from semsearch.engine.bundle import KeywordsInfo
    from semsearch.engine.keyword.matches import Correction, Matches


class Ranking:
    """What the rankings of all modes have. `is_truncated` says whether the text was longer than the search reads."""

    is_truncated: bool
    corrected: "Mapping[str, Correction] | None" = None  # the words that replace each misspelled word of the text
    added: frozenset[str] = frozenset()  # terms beside those of the text that highlights mark, such as synonyms

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first `count` hits among the rows of a mask (rows,) bool; None means all rows of the ranking."""
        raise NotImplementedError

    def best(self, count: int) -> Scored:
        """Return about the first `count` rows, faster than `find`: it can miss some of the last ones."""
        raise NotImplementedError

    def matching(self) -> Mask | None:
        """Return the rows of the ranking, (rows,) bool, or None if every text is one of them."""
        raise NotImplementedError


@dataclass
class SemanticRanking(Ranking):
    """The rows of `allowed` by their likeness to an embedding, (dim,) float32."""

    index: Index
    embedding: Embeddings
    allowed: Mask | None
    is_exact: bool
    is_truncated: bool

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first hits among the rows of a mask."""
        allowed = self.allowed if mask is None else mask
        return self.index.search(self.embedding, count, allowed, exact=self.is_exact)

    def best(self, count: int) -> Scored:
        """Return about the first rows."""
        return Scored(*self.index.best(self.embedding, count, self.allowed, exact=self.is_exact, rough=True))

    def matching(self) -> Mask | None:
        """Return the rows of the ranking."""
        return self.allowed


@dataclass
class KeywordRanking(Ranking):
    """The rows that have words of a query, by their BM25 scores."""

    matches: "Matches"

    def __post_init__(self) -> None:
        self.is_truncated: bool = self.matches.is_truncated
        self.corrected: Mapping[str, Correction] | None = self.matches.corrected
        self.added: frozenset[str] = self.matches.added

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first hits among the rows of a mask."""
        return self.matches.best(count, mask)

    def best(self, count: int) -> Scored:
        """Return the first rows."""
        return self.matches.scored(count)

    def matching(self) -> Mask | None:
        """Return the rows with a word of the query."""
        return self.matches.scores > 0


@dataclass
class HybridRanking(KeywordRanking):
    """The rows of the matches by both scores, added or combined as `info` says."""

    index: Index
    embedding: Embeddings
    info: "KeywordsInfo"
    is_exact: bool
    is_cut: bool  # whether the text has more tokens than the model reads

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_truncated: bool = self.is_truncated or self.is_cut

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first hits among the rows of a mask."""
        return self._fuse(count, mask).hits()

    def best(self, count: int) -> Scored:
        """Return about the first rows."""
        return self._fuse(count, None, is_rough=True)

    def matching(self) -> Mask | None:
        """Return the rows of the ranking."""
        return self.matches.allowed

    def _fuse(self, count: int, mask: Mask | None, *, is_rough: bool = False) -> Scored:
        from semsearch.engine.hybrid import fuse  # only a hybrid search needs it

        return fuse(
            self.index, self.embedding, self.matches, self.info, count, mask, exact=self.is_exact, rough=is_rough
        )


class ReorderedRanking(Ranking):
    """A ranking whose first hits another function finds, such as one that adds boosts."""

    def __init__(self, ranking: Ranking, find: Find, find_rows: FindRows) -> None:
        """Take the ranking, and what finds the first hits and rows in the new order."""
        self._ranking, self._find, self._find_rows = ranking, find, find_rows
        self.is_truncated: bool = ranking.is_truncated
        self.corrected: Mapping[str, Correction] | None = ranking.corrected
        self.added: frozenset[str] = ranking.added

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first hits in the new order."""
        return self._find(count, mask)

    def best(self, count: int) -> Scored:
        """Return about the first rows in the new order."""
        return self._find_rows(count)

    def matching(self) -> Mask | None:
        """Return the rows of the ranking."""
        return self._ranking.matching()


class RankingAbove(ReorderedRanking):
    """A ranking without the hits of a lower score than `least`."""

    def __init__(self, ranking: Ranking, least: float) -> None:
        """Take the ranking and the least score."""
        super().__init__(ranking, ranking.find, ranking.best)
        self._least = least

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        """Return the first hits that reach the least score."""
        return [hit for hit in super().find(count, mask) if hit.score >= self._least]

    def best(self, count: int) -> Scored:
        """Return about the first rows that reach the least score."""
        best = super().best(count)
        return best.take(np.flatnonzero(best.scores >= self._least))
