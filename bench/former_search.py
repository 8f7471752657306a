"""The search as it was before the index had lists, to be compared with: signs of all rows, then 8 bit for the closest.

It compares the signs of every row with the query's, so its time grows with the rows; one row in a hundred, at least
2,000, is then scored in 8 bit, and 150 of these with the float32 query.
"""

import numpy as np
import simsimd

from function.engine.arrays import AnyArray, Array
from function.engine.quantization import Codes, Embeddings, Scales, quantize_query
from function.engine.semantic.binary import signs

CANDIDATES = 2_000
ROWS_PER_CANDIDATE = 100
RESCORED = 150

Bits = Array[np.uint8]


def scan_signs(query: Embeddings, codes: Codes, scales: Scales, bits: Bits, top_k: int) -> Array[np.intp]:
    """Return the top_k rows most like the query, best first.

    query is (dim,) float32, codes (rows, dim) int8, scales (rows,) float32, bits (rows, dim / 8) uint8, the signs.
    """
    differing = simsimd.cdist(
        sign_bits(query[np.newaxis]),
        bits,
        metric="hamming",
        dtype="bin8",
        out_dtype="uint16",  # type: ignore[arg-type] # missing in its stub
    )
    distances = np.asarray(differing)[0]
    coarse = min(CANDIDATES + len(codes) // ROWS_PER_CANDIDATE, len(codes))
    # counting how often each number occurs is faster than comparing numbers
    largest = np.searchsorted(np.cumsum(np.bincount(distances)), coarse)
    rows = np.flatnonzero(distances <= largest)
    products = scan_codes(query, codes.take(rows, axis=0, mode="clip"), scales[rows])
    kept = rows[_largest(products, min(RESCORED, len(rows)))]
    scores = codes[kept].astype(np.float32) @ query * scales[kept]
    return np.asarray(kept[np.argsort(-scores)[:top_k]])


def sign_bits(embeddings: AnyArray) -> Bits:
    """Return the signs of rows (rows, dim), a bit for each value: (rows, dim / 8) uint8."""
    return signs(embeddings).view(np.uint8)


def scan_codes(query: Embeddings, codes: Codes, scales: Scales) -> Embeddings:
    """Return the products of the 8-bit query and all rows, (rows,) float32, up to a factor that they share."""
    products = np.asarray(simsimd.cdist(quantize_query(query), codes, metric="dot", out_dtype="float32"), np.float32)
    return products.reshape(-1) * scales


def scan_all(query: Embeddings, codes: Codes, scales: Scales, top_k: int) -> Array[np.intp]:
    """Return the top_k rows with the largest products of `scan_codes`, best first: the plainest search in 8 bit."""
    products = scan_codes(query, codes, scales)
    rows = _largest(products, top_k)
    return np.asarray(rows[np.argsort(-products[rows])])


def _largest(values: Embeddings, count: int) -> Array[np.intp]:
    return np.argpartition(values, len(values) - count)[len(values) - count :]
