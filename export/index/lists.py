"""k-means: group the rows of an index into lists of similar rows (IVF), ordered so that neighbours are similar.

Spherical k-means (Dhillon and Modha, 2001): rows and centroids have unit length, and a row belongs to the centroid with
the largest product. It learns from a sample of the rows first, and then from all rows. There are thousands of
centroids, so they are grouped by k-means too, and a row is compared only with the centroids of the nearest groups.

Each row also joins a second list (SOAR: Sun, Simcha, Dopson, Guo and Kumar, 2023, https://arxiv.org/abs/2404.00774).
The difference between a row and its first centroid is what a search gets wrong about the row. The second centroid is
near the row too, but its difference points in another direction. So a query that underestimates the row by its first
centroid rarely does so by the second.
"""

from collections.abc import Iterator

import numpy as np

from export.files.tensor_file import release
from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, dequantize, quantize

LISTS_PER_ROOT = 24  # lists = 24 * the square root of the rows; with half as many, a search must probe more
SAMPLED = 16  # rows of the sample for each list
ROUNDS = 3  # rounds of k-means over the sample
ROUNDS_OF_ALL = 2  # rounds of k-means over all rows
GROUPS_COMPARED = 12  # nearest groups of centroids that a row is compared with
AXES = 128  # principal axes that are kept; all 384 would change the recall by less than a thousandth
ROWS_AT_ONCE = 16_384
FEWER_ROWS_AT_ONCE = 4_096  # second lists take five times the memory of first lists for each row
# Weight of the part of the second difference that has the direction of the first. In trials with a million rows, 1 and
# 2 read about as many rows for the same recall, and 0.5 more.
SPREAD = 2.0
SEED = 7

Numbers = Array[np.intp]
Groups = tuple[Embeddings, list[Numbers]]  # centres (groups, dim), and the numbers of each group's centroids


def group_rows(codes: Codes, scales: Scales) -> tuple[Embeddings, Numbers]:
    """Return centroids (lists, dim) float32 of unit length and the numbers of each row's two lists, (rows, 2) intp.

    codes is (rows, dim) int8 and scales (rows,) float32, both can be memory-mapped. No list is empty. Lists with
    similar centroids have numbers that are near each other. If there is one list, it is both.
    """
    generator = np.random.default_rng(SEED)
    count = min(len(codes), int(LISTS_PER_ROOT * len(codes) ** 0.5))
    sampled = np.sort(generator.permutation(len(codes))[: SAMPLED * count])
    sample, sample_scales = codes[sampled], scales[sampled]
    first = generator.permutation(len(sample))[:count]
    centroids = dequantize(sample[first], sample_scales[first])
    for _ in range(ROUNDS):
        nearest = _find_nearest(sample, sample_scales, centroids, _group(centroids))
        centroids = _means(sample, sample_scales, nearest, len(centroids))
    for _ in range(ROUNDS_OF_ALL):
        nearest = _find_nearest(codes, scales, centroids, _group(centroids))
        centroids = _means(codes, scales, nearest, len(centroids))
    centres, groups = _group(centroids)
    near = [groups[number] for number in _chain(centres)]
    centroids = centroids[np.concatenate([members[_chain(centroids[members])] for members in near])]
    used, numbers = np.unique(_find_both_lists(codes, scales, centroids), return_inverse=True)
    return centroids[used], numbers


def principal_axes(centroids: Embeddings) -> Embeddings:
    """Return the directions in which the centroids (lists, dim) differ most, (dim, AXES or fewer) float32.

    They are orthogonal and of unit length, the first one first (principal component analysis without a shift).
    """
    _, vectors = np.linalg.eigh(centroids.T.astype(np.float64) @ centroids)
    return np.ascontiguousarray(vectors[:, ::-1][:, :AXES], np.float32)


def _group(centroids: Embeddings) -> Groups:
    """Group similar centroids by k-means: there are about as many groups as a group has members."""
    centres = centroids[:: max(1, round(len(centroids) ** 0.5))]
    codes, scales = quantize(centroids)
    for _ in range(ROUNDS):
        centres = _means(codes, scales, np.argmax(centroids @ centres.T, axis=1), len(centres))
    nearest = np.argmax(centroids @ centres.T, axis=1)
    return centres, [np.flatnonzero(nearest == number) for number in range(len(centres))]


def _find_nearest(codes: Codes, scales: Scales, centroids: Embeddings, groups: Groups) -> Numbers:
    """Return the number of the centroid nearest to each row, of those in the GROUPS_COMPARED groups nearest to it."""
    found = np.empty(len(codes), np.intp)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        block = dequantize(codes[begin : begin + ROWS_AT_ONCE], scales[begin : begin + ROWS_AT_ONCE])
        release(codes)
        best, nearest = np.full(len(block), -np.inf, np.float32), found[begin : begin + ROWS_AT_ONCE]
        for near, members in _near_groups(block, groups):
            _keep_better(block[near] @ centroids[members].T, near, members, best, nearest)
    return found


def _near_groups(block: Embeddings, groups: Groups) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield, for each group, the rows of the block that are near it, and the numbers of its centroids."""
    centres, members_of = groups
    products = block @ centres.T
    rank = max(0, len(centres) - GROUPS_COMPARED)
    is_near = products >= np.partition(products, rank, axis=1)[:, rank, np.newaxis]
    for number, members in enumerate(members_of):
        near = np.flatnonzero(is_near[:, number])
        if len(near) and len(members):
            yield near, members


def _keep_better(likeness: Embeddings, near: Numbers, members: Numbers, best: Embeddings, nearest: Numbers) -> None:
    """Update `nearest` and `best` of each near row whose most similar member beats `best`.

    likeness is (near, members); best and nearest are those of all rows of a block.
    """
    chosen = likeness.argmax(axis=1)
    highest = likeness[np.arange(len(near)), chosen]
    better = highest > best[near]
    best[near[better]] = highest[better]
    nearest[near[better]] = members[chosen[better]]


def _find_both_lists(codes: Codes, scales: Scales, centroids: Embeddings) -> Numbers:
    """Return the numbers of both lists of each row, (rows, 2)."""
    groups = _group(centroids)
    first = _find_nearest(codes, scales, centroids, groups)
    second = first.copy()
    for begin in range(0, len(codes), FEWER_ROWS_AT_ONCE):
        some = slice(begin, begin + FEWER_ROWS_AT_ONCE)
        block = dequantize(codes[some], scales[some])
        release(codes)
        own, nearest = first[some], second[some]
        best = np.full(len(block), -np.inf, np.float32)
        for near, members in _near_groups(block, groups):
            likeness = second_likeness(block[near], centroids[own[near]], centroids[members])
            likeness[own[near, np.newaxis] == members] = -np.inf
            _keep_better(likeness, near, members, best, nearest)
    return np.column_stack([first, second])


def second_likeness(rows: Embeddings, own: Embeddings, centroids: Embeddings) -> Embeddings:
    """Return how well each centroid suits as the second one of each row, (n, m): the higher, the better.

    rows is (n, dim), own (n, dim) is the first centroid of each row, and centroids is (m, dim).
    """
    differences = rows - own
    lengths = np.linalg.norm(differences, axis=1, keepdims=True)
    directions = differences / np.where(lengths > 0, lengths, 1)
    along = (directions * rows).sum(axis=1, keepdims=True) - directions @ centroids.T
    likeness: Embeddings = 2 * rows @ centroids.T - (centroids**2).sum(axis=1) - SPREAD * along**2
    return likeness


def _means(codes: Codes, scales: Scales, numbers: Numbers, count: int) -> Embeddings:
    """Return, for each number below `count` that some row has, the mean of these rows, scaled to length 1."""
    sums = np.zeros((count, codes.shape[1]), np.float32)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        block = slice(begin, begin + ROWS_AT_ONCE)
        order = np.argsort(numbers[block], kind="stable")
        used, begins = np.unique(numbers[block][order], return_index=True)
        sums[used] += np.add.reduceat(dequantize(codes[block], scales[block])[order], begins, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    is_used = lengths[:, 0] > 0
    means: Embeddings = sums[is_used] / lengths[is_used]
    return means


def _chain(centroids: Embeddings) -> list[int]:
    """Return an order of the centroids in which each is followed by the nearest of the remaining ones."""
    products = centroids @ centroids.T
    order: list[int] = []
    place = 0
    while len(order) < len(centroids):
        order.append(place)
        products[:, place] = -np.inf  # in the order already
        place = int(np.argmax(products[place]))
    return order
