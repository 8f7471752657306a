"""Exact search in float32, which approximate ones are compared with, over rows that need not fit into memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export.recall import ROUNDING, ROWS_AT_ONCE, Scores
from function.engine.quantization import Embeddings

TOP_K = 10


@dataclass(frozen=True, slots=True)
class Exact:
    """The queries (n, dim), the rows (rows, dim), and the lowest score among each query's TOP_K best (n,), float32."""

    queries: Embeddings
    rows: Embeddings
    least: Scores

    def recall(self, found: Sequence[Sequence[int]], first: int = 0) -> float:
        """Return the share (0 to 1) of the TOP_K best rows that were found, for the queries from number `first` on.

        Rows with equal scores may come in any order. Numbers that are no rows count as not found: some libraries
        return them where they found fewer.
        """
        right = 0
        for number, rows in enumerate(found, first):
            real = [row for row in rows if 0 <= row < len(self.rows)]
            right += int(np.count_nonzero(self.rows[real] @ self.queries[number] >= self.least[number] - ROUNDING))
        return right / (TOP_K * len(found))


def search_exactly(queries: Embeddings, rows: Embeddings) -> Exact:
    """Return what exact search finds: all products of queries and rows, block by block."""
    best = np.full((len(queries), TOP_K), -np.inf, np.float32)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        scores = queries @ rows[begin : begin + ROWS_AT_ONCE].T
        best = np.partition(np.hstack([best, scores]), -TOP_K, axis=1)[:, -TOP_K:]
    return Exact(queries, rows, best.min(axis=1))
