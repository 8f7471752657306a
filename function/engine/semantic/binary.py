"""The signs of embeddings, a bit for each value, and how many of them differ between a query and many rows.

The bits of a row are 64-bit words. They are stored word by word, the first words of all rows, then their second words:
a scan of rows stored so takes half the time of one row by row.
"""

import numpy as np

from function.engine.arrays import AnyArray, Array

Words = Array[np.uint64]
WORD_BITS = 64
# Rows whose words are compared at a time, so that they stay in the CPU's cache until they are counted. Together with
# WORDS_AT_ONCE this takes 0.86 of the time of counting a million rows at once, and as much as that for 200,000.
ROWS_AT_ONCE = 131_072
WORDS_AT_ONCE = 3  # words whose counts are added as bytes: four words can have 256 differing bits


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


def count_differing(query: Words, columns: Words) -> Array[np.uint16]:
    """Return how many bits of each row differ from the query's: (n,) for rows (words, n) and query (1, words)."""
    differing = np.zeros(columns.shape[1], np.uint16)
    size = min(len(differing), ROWS_AT_ONCE)
    words, counts, sums = np.empty(size, np.uint64), np.empty(size, np.uint8), np.empty(size, np.uint8)
    for begin in range(0, len(differing), ROWS_AT_ONCE):
        block = differing[begin : begin + ROWS_AT_ONCE]
        words, counts, sums = words[: len(block)], counts[: len(block)], sums[: len(block)]
        for first in range(0, len(columns), WORDS_AT_ONCE):
            sums[:] = 0
            for word in range(first, min(first + WORDS_AT_ONCE, len(columns))):
                np.bitwise_xor(columns[word, begin : begin + ROWS_AT_ONCE], query[0, word], out=words)
                np.bitwise_count(words, out=counts)
                sums += counts
            block += sums
    return differing
