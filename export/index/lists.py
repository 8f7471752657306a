"""k-means: rows of an index to lists of similar rows (IVF), and lists to an order in which neighbours are similar.

Spherical k-means (Dhillon and Modha, 2001): rows and centroids have unit length, and a row belongs to the centroid with
the largest product. It learns from a sample of the rows, because more rows would move the centroids little. There are
thousands of centroids, so they are grouped by k-means too, and a row is compared only with the centroids
of the nearest groups.
"""

import numpy as np

from export.files.tensor_file import release
from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, dequantize, quantize

LISTS_PER_ROOT = 24  # lists for each unit of the square root of the rows; with half of them, a search must probe more
SAMPLED = 16  # rows of the sample for each list
ROUNDS = 3  # rounds of k-means; more change the recall by less than a thousandth
GROUPS_COMPARED = 12  # nearest groups of centroids that a row is compared with
AXES = 128  # principal axes that are kept; all 384 would change the recall by less than a thousandth
ROWS_AT_ONCE = 16_384
SEED = 7

Numbers = Array[np.intp]
Groups = tuple[Embeddings, list[Numbers]]  # centres (groups, dim), and the numbers of each group's centroids


def group_rows(codes: Codes, scales: Scales) -> tuple[Embeddings, Numbers]:
    """Return centroids (lists, dim) float32 of unit length and the number of each row's list, (rows,) intp.

    codes is (rows, dim) int8 and scales (rows,) float32, both can be memory-mapped. No list is empty. Lists with
    similar centroids have numbers that are near each other.
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
    centres, groups = _group(centroids)
    near = [groups[number] for number in _chain(centres)]
    centroids = centroids[np.concatenate([members[_chain(centroids[members])] for members in near])]
    used, numbers = np.unique(_find_nearest(codes, scales, centroids, _group(centroids)), return_inverse=True)
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
    centres, members_of = groups
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        block = dequantize(codes[begin : begin + ROWS_AT_ONCE], scales[begin : begin + ROWS_AT_ONCE])
        release(codes)
        products = block @ centres.T
        rank = max(0, len(centres) - GROUPS_COMPARED)
        is_near = products >= np.partition(products, rank, axis=1)[:, rank, np.newaxis]
        best, nearest = np.full(len(block), -np.inf, np.float32), found[begin : begin + ROWS_AT_ONCE]
        for number, members in enumerate(members_of):
            near = np.flatnonzero(is_near[:, number])
            if not (len(near) and len(members)):
                continue
            products = block[near] @ centroids[members].T
            places = products.argmax(axis=1)
            highest = products[np.arange(len(near)), places]
            better = highest > best[near]
            best[near[better]] = highest[better]
            nearest[near[better]] = members[places[better]]
    return found


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
