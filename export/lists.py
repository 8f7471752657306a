"""k-means: rows of an index to lists of like rows, and the lists to an order in which neighbours are alike.

Spherical k-means (Dhillon and Modha, 2001): rows and centroids have unit length, and a row belongs to the centroid with
the largest product. It learns from a sample of the rows, because more rows would move the centroids little.
"""

import numpy as np

from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, dequantize

LISTS_PER_ROOT = 8  # times the square root of the rows; twice as many find more, but take as much longer to choose from
SAMPLED = 16  # rows of the sample for each list
ROUNDS = 3  # more change the recall by less than a thousandth
ROWS_AT_ONCE = 2_048  # times 4,000 lists: 33 MB of products
SEED = 7

Numbers = Array[np.intp]


def group_rows(codes: Codes, scales: Scales) -> tuple[Embeddings, Numbers]:
    """Return centroids (lists, dim) float32 of unit length and the number of each row's list, (rows,) intp.

    codes is (rows, dim) int8 and scales (rows,) float32, both may be memory-mapped. No list is empty. Lists with like
    centroids have numbers that are near each other.
    """
    chance = np.random.default_rng(SEED)
    count = min(len(codes), int(LISTS_PER_ROOT * len(codes) ** 0.5))
    sampled = np.sort(chance.permutation(len(codes))[: SAMPLED * count])
    rows = dequantize(codes[sampled], scales[sampled])
    centroids = rows[chance.permutation(len(rows))[:count]]
    for _ in range(ROUNDS):
        centroids = _means(rows, centroids)
    centroids = centroids[_chain(centroids)]
    blocks = (slice(begin, begin + ROWS_AT_ONCE) for begin in range(0, len(codes), ROWS_AT_ONCE))
    numbers = np.concatenate([_nearest(dequantize(codes[block], scales[block]), centroids) for block in blocks])
    used, numbers = np.unique(numbers, return_inverse=True)
    return centroids[used], numbers


def _nearest(rows: Embeddings, centroids: Embeddings) -> Numbers:
    nearest: Numbers = np.argmax(rows @ centroids.T, axis=1)
    return nearest


def _means(rows: Embeddings, centroids: Embeddings) -> Embeddings:
    """Return the unit means of the rows nearest to each centroid, without those that are nearest to no row."""
    sums = np.zeros_like(centroids)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        block = rows[begin : begin + ROWS_AT_ONCE]
        nearest = _nearest(block, centroids)
        order = np.argsort(nearest, kind="stable")
        numbers, begins = np.unique(nearest[order], return_index=True)
        sums[numbers] += np.add.reduceat(block[order], begins, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    is_used = lengths[:, 0] > 0
    means: Embeddings = sums[is_used] / lengths[is_used]
    return means


def _chain(centroids: Embeddings) -> list[int]:
    """Return an order of the centroids in which each is followed by the nearest of those that are left."""
    products = centroids @ centroids.T
    taken = np.zeros(len(centroids), np.float32)
    order = [0]
    while len(order) < len(centroids):
        taken[order[-1]] = -np.inf
        order.append(int(np.argmax(products[order[-1]] + taken)))
    return order
