"""Recall: the share of exact search's results that an approximate index, or an 8-bit model, also finds."""

from dataclasses import dataclass

import numpy as np

from export.files.tensor_file import release
from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, dequantize
from function.engine.semantic.index import Index

QUERIES = 500  # rows of an index that are used as queries
TOP_K = 10
LEAST_RECALL = 0.98  # least recall of an index against exact search
ROWS_AT_ONCE = 16_384  # rows of exact search at a time: 33 MB of scores with QUERIES
SEARCHES_AT_ONCE = 10  # searches before the pages that they read are released
ROUNDING = 1e-5  # difference between two ways to sum the same products

Scores = Array[np.float32]  # (queries, texts)


def recall(hits: Scores, least: Scores) -> float:
    """Return the share of the hits that are among the best, 0 to 1.

    hits is (queries, top_k) float32, the exact scores of the hits; least is (queries,) float32, the lowest exact
    score among each query's top_k best. Texts with equal scores may therefore come in any order.
    """
    return float(np.mean(hits >= least[:, np.newaxis]))


def neighbour_recall(exact: Scores, found: Scores, top_k: int = TOP_K) -> float:
    """Return the share (0 to 1) of the top_k texts by `found` that are also in the top_k by `exact`, over all queries.

    Both are (queries, texts) float32, with more than top_k texts.
    """
    hits = np.argpartition(-found, top_k, axis=1)[:, :top_k]
    return recall(np.take_along_axis(exact, hits, axis=1), np.partition(exact, -top_k, axis=1)[:, -top_k])


@dataclass(frozen=True, slots=True)
class ExactSearch:
    """What exact search finds: the score of the last of its hits, (m,) float32, for queries (m, dim) float32."""

    queries: Embeddings
    least: Scores
    top_k: int

    def recall_of(self, index: Index) -> float:
        """Return the share (0 to 1) of the index's hits that are also among exact search's, over all queries."""
        hits = np.empty((len(self.queries), self.top_k), np.float32)
        for number, query in enumerate(self.queries):
            hits[number] = [hit.score for hit in index.search(query, self.top_k)]
            if number % SEARCHES_AT_ONCE == 0:
                release(index.codes)  # or the searches would bring nearly the whole index into memory
        return recall(hits, np.minimum(self.least, 1) - np.float32(ROUNDING))  # an index rounds no score above 1


def search_exactly(queries: Embeddings, codes: Codes, scales: Scales, top_k: int = TOP_K) -> ExactSearch:
    """Compare queries (m, dim) float32 with all rows: codes (rows, dim) int8 and scales (rows,) float32."""
    top_k = min(top_k, len(codes))
    best = np.full((len(queries), top_k), -np.inf, np.float32)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        scores = queries @ dequantize(codes[rows], scales[rows]).T
        best = np.partition(np.hstack([best, scores]), -top_k, axis=1)[:, -top_k:]
        release(codes)
    return ExactSearch(queries, best.min(axis=1), top_k)


def own_queries(codes: Codes, scales: Scales) -> Embeddings:
    """Return QUERIES of an index's rows, evenly spread, as queries: (m, dim) float32 of unit length."""
    rows = slice(None, None, max(1, len(codes) // QUERIES))
    queries = dequantize(codes[rows], scales[rows])
    lengths = np.linalg.norm(queries, axis=1, keepdims=True)
    queries /= np.where(lengths > 0, lengths, 1)  # a row can be zeros
    return queries
