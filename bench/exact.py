"""What exact search in float32 finds, which rows that were found otherwise are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export.index.recall import ROUNDING, TOP_K, Scores
from function.engine.quantization import Embeddings


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
