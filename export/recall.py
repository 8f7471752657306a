"""Does the index find what exact search finds? Measured on some of its own rows, before a bundle is trusted."""

import numpy as np

from function.engine.index import Bits, Index
from function.engine.quantization import Codes, Embeddings, Scales, dequantize

QUERIES = 200  # rows asked as queries
TOP_K = 10
LEAST_RECALL = 0.98  # of the search against a scan of all rows; 0.998 is usual
ROWS_AT_ONCE = 65_536  # of exact search: 100 MB at 384 dimensions
ROUNDING = 1e-5  # between two ways to sum the same products


def measure_recall(queries: Embeddings, codes: Codes, scales: Scales, index: Index, top_k: int = TOP_K) -> float:
    """Give the share of the index's hits that exact search counts among the top_k best, 0 to 1.

    queries is (m, dim) float32; codes (rows, dim) int8 and scales (rows,) float32 are the rows that the index holds.
    A hit counts by its score, so that texts which stand in the corpus twice may come in any order.
    """
    top_k = min(top_k, len(codes))
    best = np.full((len(queries), top_k), -np.inf, np.float32)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        scores = queries @ dequantize(codes[rows], scales[rows]).T
        best = np.partition(np.hstack([best, scores]), -top_k, axis=1)[:, -top_k:]
    shares = []
    for query, least in zip(queries, best.min(axis=1), strict=True):
        hits = index.search(query, top_k)
        shares.append(sum(hit.score >= min(float(least), 1.0) - ROUNDING for hit in hits) / top_k)
    return float(np.mean(shares))


def measure_own_recall(codes: Codes, scales: Scales, bits: Bits | None) -> float:
    """Give the recall of an index asked for QUERIES of its own rows, spread over all of them, 0 to 1."""
    rows = slice(None, None, max(1, len(codes) // QUERIES))
    queries = dequantize(codes[rows], scales[rows])
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return measure_recall(queries, codes, scales, Index(codes, scales, bits))
