"""Embeddings in 8 bit: a signed byte for each value and a scale for each row, and back.

Each row has its own scale, because one large value would make the steps of all other rows coarse. Left out: the 8-bit
weights of the model, which `semsearch/conversion/quantize.py` makes.
"""

import math

import numpy as np

from semsearch.engine.tensors import Array

Embeddings = Array[np.float32]
Codes = Array[np.int8]
Scales = Array[np.float32]

LARGEST_CODE = 127  # symmetric: -128 stays unused, so that the codes of -x are minus the codes of x


def quantize(embeddings: Embeddings) -> tuple[Codes, Scales]:
    """Return each row as int8 codes and the float32 scale that turns them back.

    embeddings is (n, dim) float32; the result is (n, dim) int8 and (n,) float32. The row's largest absolute value gets
    the code 127 or -127, and the others the nearest multiple of 1/127 of it. The scale restores the length of the row,
    so that a unit embedding has length 1 again, and the score of a text with itself is 1. A row of zeros has scale 0.
    Raises ValueError if a value is not finite.
    """
    finite = np.isfinite(embeddings).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"embeddings: row {row} holds a value that is not finite; check the model that made it")
    steps = np.abs(embeddings).max(axis=1, initial=0.0, keepdims=True) / LARGEST_CODE
    steps[steps == 0] = 1.0
    codes = np.rint(embeddings / steps).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    lengths[lengths == 0] = 1.0
    return codes, (np.linalg.norm(embeddings, axis=1) / lengths).astype(np.float32)


def quantize_query(query: Embeddings) -> Codes:
    """Return a query's codes without their scale, which would multiply the scores of all rows alike.

    query is (dim,) float32; the result is (1, dim) int8, the codes that `quantize` returns for this row.
    Raises ValueError if a value is not finite.
    """
    largest = float(np.abs(query).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("query: holds a value that is not finite; check the model that made it")
    step = np.float32(largest) / LARGEST_CODE or 1.0
    codes: Codes = np.rint(query[np.newaxis] / step).astype(np.int8)
    return codes


def dequantize(codes: Codes, scales: Scales) -> Embeddings:
    """Return the embeddings that `quantize` stored: the length of each row is exact, each value within about one step.

    codes is (n, dim) int8, scales is (n,) float32; the result is (n, dim) float32.
    """
    return codes.astype(np.float32) * scales[:, np.newaxis]
