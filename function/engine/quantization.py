"""Embeddings in 8 bit: a signed byte a value and a scale a row, and back.

Each row has its own scale, since one large value would make the steps of all others coarse. How the model's weights
become 8 bit is another matter: `export/quantize.py`.
"""

import math

import numpy as np

from function.engine.arrays import Array

Embeddings = Array[np.float32]
Codes = Array[np.int8]
Scales = Array[np.float32]

LARGEST_CODE = 127  # symmetric: -128 stays unused, so that a vector and its opposite have opposite codes


def quantize(embeddings: Embeddings) -> tuple[Codes, Scales]:
    """Return each row as int8 codes and the float32 scale that turns them back.

    embeddings is (n, dim) float32; the result is (n, dim) int8 and (n,) float32. A value's code is the nearest of 127
    steps to the row's largest absolute value. The scale then gives the row back its own length: a unit embedding
    stays one. With the bare step, the score of a text with itself would be off by as much as 0.0015.
    A row of zeros has scale 0. Raises ValueError if a value is not finite.
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
    """Return a query's codes without their scale, which all rows of a search would share.

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
    """Return the embeddings that `quantize` stored: each row's length as it was, each value within about a step.

    codes is (n, dim) int8, scales is (n,) float32; the result is (n, dim) float32.
    Raises ValueError if n differs.
    """
    if len(codes) != len(scales):
        raise ValueError(f"codes have {len(codes)} rows, scales {len(scales)}; they must be of one matrix")
    return codes.astype(np.float32) * scales[:, np.newaxis]
