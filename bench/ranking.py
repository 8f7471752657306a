"""How good an order of documents is, measured on a test whose relevant documents are known."""

from collections.abc import Sequence

import numpy as np

from bench.data import Retrieval

TOP_K = 10


def ndcg(best: Sequence[Sequence[int]], test: Retrieval) -> float:
    """Return the mean nDCG@10 over the queries, relevance being yes or no (Järvelin and Kekäläinen, 2002).

    best has the rows of the documents that were found for each query of the test, best first.
    """
    ids = list(test.documents)
    discounts = 1 / np.log2(np.arange(2, TOP_K + 2))
    gains = []
    for query_id, rows in zip(test.queries, best, strict=True):
        relevant = test.relevant[query_id]
        gain = sum(discounts[rank] for rank, row in enumerate(rows[:TOP_K]) if ids[row] in relevant)
        gains.append(gain / discounts[: len(relevant)].sum())
    return float(np.mean(gains))
