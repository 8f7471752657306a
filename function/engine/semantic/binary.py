"""The signs of embeddings, a bit for each value, and how many of them differ between a query and many rows.

The bits of a row are 64-bit words. Words of many rows are stored in one of two ways: row by row, to take some rows, or
word by word (first words of all rows, then their second words), which makes a scan of all rows almost twice as fast.
"""

import numpy as np
import simsimd

from function.engine.arrays import AnyArray, Array

Words = Array[np.uint64]
WORD_BITS = 64
# Rows that are copied from the file at a time: they stay in the CPU's cache until they are compared
ROWS_AT_ONCE = 4_096


def signs(embeddings: AnyArray) -> Words:
    """Return a bit for each value, set where it is positive: (n, dim) to (n, dim / 64 rounded up) uint64."""
    bits = np.packbits(embeddings > 0, axis=1)
    if missing := -bits.shape[1] % (WORD_BITS // 8):
        bits = np.pad(bits, ((0, 0), (0, missing)))
    return bits.view(np.uint64)


def unpack_signs(words: Words, dim: int) -> Array[np.int8]:
    """Return 1 for each bit that is set, else 0: (n, words) to (n, dim)."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1))  # twice as fast with one axis
    return bits.reshape(len(words), -1)[:, :dim].view(np.int8)


def count_differing(query: Words, rows: Words) -> Array[np.uint16]:
    """Return how many bits of each row differ from the query's: (n,) for rows (n, words) and query (1, words)."""
    differing = simsimd.cdist(
        query.view(np.uint8),
        rows.view(np.uint8),
        metric="hamming",
        dtype="bin8",
        out_dtype="uint16",  # type: ignore[arg-type] # missing in its stub
    )
    return np.asarray(differing, np.uint16).reshape(-1)


def count_differing_at(query: Words, rows: Words, places: AnyArray) -> Array[np.uint16]:
    """Return how many bits of the rows at some places (n,) differ from the query's: (n,)."""
    differing = np.empty(len(places), np.uint16)
    for begin in range(0, len(places), ROWS_AT_ONCE):
        some = rows.take(places[begin : begin + ROWS_AT_ONCE], axis=0, mode="clip")
        differing[begin : begin + ROWS_AT_ONCE] = count_differing(query, some)
    return differing


def count_differing_columns(query: Words, columns: Words) -> Array[np.uint16]:
    """Return how many bits of each row differ from the query's, (n,), for rows stored word by word: (words, n)."""
    differing = np.zeros(columns.shape[1], np.uint16)
    words, counts = np.empty(columns.shape[1], np.uint64), np.empty(columns.shape[1], np.uint8)
    for word, column in zip(query[0], columns, strict=True):
        np.bitwise_xor(column, word, out=words)
        np.bitwise_count(words, out=counts)
        differing += counts
    return differing
