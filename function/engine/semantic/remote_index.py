"""Embedding to hits if a service, such as Amazon S3 Vectors, has the vectors and the bundle has everything else.

A RemoteIndex belongs to one query and has the methods of Index that a search calls. The service ranks the vectors. It
applies the filter of the query first, if it can. All other limits on rows, such as words between quotation marks, are
applied here:

- up to MOST_FETCHED allowed rows: their vectors are fetched by their keys, so the search is exact,
- more allowed rows: those among the MOST_RANKED closest vectors are hits, so a search can return too few.

The vectors are those that the bundle's own index would compare. So the scores are the same too, except for the rounding
of their last decimal.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from function.engine.arrays import Array
from function.engine.quantization import Embeddings
from function.engine.semantic.index import DECIMALS, Hit, Mask, Rows

Condition = dict[str, Any]  # a filter of the service
Page = list[tuple[int, float]]  # rows and their scores

PAGE = 100  # vectors of one reply: S3 Vectors returns up to 100 at a time, and GetVectors takes 100 keys
MOST_FETCHED = 1_000  # rows whose vectors are fetched: ten requests, 3 MB of JSON at 384 dimensions
MOST_RANKED = 1_000  # rows that the service is asked to rank: ten requests, one after the other


class VectorService(Protocol):
    """A service that has the vectors."""

    def nearest(self, embedding: Embeddings, top_k: int, condition: Condition | None) -> Iterator[Page]:
        """Yield the top_k rows closest to an embedding that pass a filter, best first; each page is one request."""

    def embeddings(self, rows: Sequence[int]) -> Embeddings:
        """Return the vectors of some rows, (n, dim) float32."""


class RemoteIndex:
    """The vectors of a corpus in a service, for one query."""

    def __init__(
        self,
        service: VectorService,
        rows: int,
        allowed: Mask | None = None,
        condition: Callable[[], Condition | None] = lambda: None,
    ) -> None:
        """Take the number of rows of the corpus, and the rows that the query's filter keeps, None for all.

        `condition` returns the same filter for the service, or None if the service cannot apply it.
        """
        self._service = service
        self._rows = rows
        self._allowed = allowed
        self._make_condition = condition
        self._scores: dict[int, float] = {}
        self._ranked: list[int] = []  # the first rows that the service returned
        self._asked = 0  # number of rows that the service was asked to rank
        self._pages: Iterator[Page] = iter(())

    @cached_property
    def _condition(self) -> Condition | None:
        return self._make_condition()

    def search(self, query: Embeddings, top_k: int, allowed: Mask | None = None, *, exact: bool = False) -> list[Hit]:
        """Return what `best` returns, as hits."""
        rows, scores = self.best(query, top_k, allowed, exact=exact)
        return list(map(Hit, rows.tolist(), scores.tolist()))

    def best(
        self, query: Embeddings, top_k: int, allowed: Mask | None = None, *, exact: bool = False
    ) -> tuple[Rows, Array[np.float64]]:
        """Return the top_k rows most like the query, best first, and their scores: (n,) each.

        They are fewer if the service ranks no more.

        Equal rows are in the order of the corpus. query is (dim,) float32 of unit length, the same in each call.
        allowed is (rows,) bool, some of the rows that the filter keeps; None allows them all. `exact` is ignored.
        """
        mask = self._allowed if allowed is None else allowed
        left = self._count(mask)
        limited_there = left == (self._count(self._allowed) if self._condition else self._rows)
        if left <= MOST_FETCHED and not limited_there:
            assert mask is not None  # otherwise all rows are left
            rows = np.flatnonzero(mask).tolist()
            self.scores(query, np.array(rows, np.intp))
        else:
            # whole pages, so that equal rows at the end are ordered here
            wanted = -(-min(top_k, left) // PAGE) * PAGE if limited_there else MOST_RANKED
            rows = []
            for page in self._ranking(query, min(wanted, MOST_RANKED)):
                rows += [row for row in page if mask is None or mask[row]]
                if len(rows) >= top_k:
                    break
        best = sorted(rows, key=lambda row: (-self._scores[row], row))[:top_k]
        return np.array(best, np.intp), np.array([self._scores[row] for row in best], np.float64)

    def _count(self, mask: Mask | None) -> int:
        return self._rows if mask is None else int(np.count_nonzero(mask))

    def _ranking(self, query: Embeddings, top_k: int) -> Iterator[Sequence[int]]:
        """Yield the rows that the service ranks first, as they arrive. Rows that arrived before are not requested."""
        if top_k > self._asked and len(self._ranked) == self._asked:
            self._ranked, self._asked = [], top_k
            self._pages = self._service.nearest(query, top_k, self._condition)
        yield self._ranked[:]
        for page in self._pages:
            self._scores.update(page)
            rows = [row for row, _ in page]
            self._ranked += rows
            yield rows

    def scores(self, query: Embeddings, rows: Rows) -> Array[np.float64]:
        """Return the cosines of these rows to the query, to six decimals: (n,) float64.

        Rows that the service did not return are fetched. query is (dim,) float32 of unit length, rows is (n,).
        """
        missing = [row for row in rows.tolist() if row not in self._scores]
        if missing:
            products = self._service.embeddings(missing).astype(np.float64) @ query.astype(np.float64)
            self._scores.update(zip(missing, _rounded(products), strict=True))
        return np.array([self._scores[row] for row in rows.tolist()], np.float64)

    def within_reach(self, rows: Rows, weight: float, others: Array[np.float64], top_k: int) -> Rows:
        """Return the rows that can be among the top_k by weight * cosine + others, so that no more rows are fetched.

        The cosine of a row that the service did not return is at most the lowest one that it returned. `others` is
        (n,) float64, like rows.
        """
        if not self._ranked:
            return rows
        lowest = min(self._scores[row] for row in self._ranked)
        highest = weight * np.array([self._scores.get(row, lowest) for row in rows.tolist()]) + others
        is_known = np.array([row in self._scores for row in rows.tolist()], np.bool_)
        if np.count_nonzero(is_known) < top_k:
            return rows
        least = np.partition(highest[is_known], -top_k)[-top_k] - 10.0 ** (1 - DECIMALS)
        reaching: Rows = rows[is_known | (highest >= least)]
        return reaching

    def embedding(self, row: int) -> Embeddings:
        """Return the stored embedding of a row of the corpus, (dim,) float32 of unit length, as a query."""
        (embedding,) = self._service.embeddings([row])
        unit: Embeddings = embedding / (np.linalg.norm(embedding) or 1)
        return unit


def _rounded(scores: Array[np.float64]) -> Iterable[float]:
    found: list[float] = np.round(np.clip(scores, -1, 1), DECIMALS).tolist()
    return found
