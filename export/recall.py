"""Recall: the share of exact search's results that an approximate index, or an 8-bit model, also finds."""

import numpy as np

from export.mapped import release
from function.engine.arrays import Array
from function.engine.index import Bits, Index
from function.engine.quantization import Codes, Embeddings, Scales, dequantize

QUERIES = 200  # rows of an index that are its queries
TOP_K = 10
LEAST_RECALL = 0.98  # of an index against exact search
ROWS_AT_ONCE = 16_384  # of exact search: 25 MB at 384 dimensions
ROUNDING = 1e-5  # between two ways to sum the same products

Scores = Array[np.float32]  # of queries with texts


def recall(hits: Scores, least: Scores) -> float:
    """Return the share of the hits that are among the best, 0 to 1.

    hits is (queries, top_k) float32, the exact scores of what was found; least is (queries,) float32, the lowest exact
    score among each query's top_k best. Texts with equal scores may therefore come in any order.
    """
    return float(np.mean(hits >= least[:, np.newaxis]))


def neighbour_recall(exact: Scores, found: Scores, top_k: int = TOP_K) -> float:
    """Return the share (0 to 1) of the top_k texts by `found` that are also in the top_k by `exact`, over all queries.

    Both are (queries, texts) float32, with more than top_k texts.
    """
    hits = np.argpartition(-found, top_k, axis=1)[:, :top_k]
    return recall(np.take_along_axis(exact, hits, axis=1), np.partition(exact, -top_k, axis=1)[:, -top_k])


def measure_recall(queries: Embeddings, codes: Codes, scales: Scales, index: Index, top_k: int = TOP_K) -> float:
    """Return the share (0 to 1) of the index's hits that are also among exact search's top_k, over all queries.

    queries is (m, dim) float32; codes (rows, dim) int8 and scales (rows,) float32 are the rows that the index holds.
    """
    top_k = min(top_k, len(codes))
    best = np.full((len(queries), top_k), -np.inf, np.float32)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        scores = queries @ dequantize(codes[rows], scales[rows]).T
        best = np.partition(np.hstack([best, scores]), -top_k, axis=1)[:, -top_k:]
        release(codes)
    hits = np.array([[hit.score for hit in index.search(query, top_k)] for query in queries], np.float32)
    return recall(hits, np.minimum(best.min(axis=1), 1) - np.float32(ROUNDING))  # an index rounds no score above 1


def measure_own_recall(codes: Codes, scales: Scales, bits: Bits | None) -> float:
    """Return the recall of an index for QUERIES of its own rows, evenly spread, as the queries: 0 to 1."""
    rows = slice(None, None, max(1, len(codes) // QUERIES))
    queries = dequantize(codes[rows], scales[rows])
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return measure_recall(queries, codes, scales, Index(codes, scales, bits))
