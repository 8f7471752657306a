"""Rows in lists: each row where its nearest centroid is, like lists side by side."""

import numpy as np
import pytest

from export.index.lists import LISTS_PER_ROOT, SPREAD, group_rows
from function.engine.quantization import dequantize, quantize
from tests.export.conftest import clustered_rows

ROWS = 6_000


def test_rows_are_in_the_list_whose_centroid_is_nearest() -> None:
    codes, scales = quantize(clustered_rows(ROWS))
    centroids, numbers = group_rows(codes, scales)
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-5)
    assert np.bincount(numbers.reshape(-1)).min() > 0
    assert len(np.bincount(numbers.reshape(-1))) == len(centroids) <= LISTS_PER_ROOT * ROWS**0.5
    products = dequantize(codes, scales) @ centroids.T
    own = products[np.arange(ROWS), numbers[:, 0]]
    assert np.mean(own >= products.max(axis=1) - 1e-6) > 0.95  # only centroids of near groups are compared


def test_the_second_list_is_near_too_and_its_difference_from_the_row_has_another_direction() -> None:
    codes, scales = quantize(clustered_rows(ROWS))
    centroids, numbers = group_rows(codes, scales)
    assert (numbers[:, 0] != numbers[:, 1]).all()
    is_best = []
    for row, (first, second) in zip(dequantize(codes, scales)[::50], numbers[::50], strict=True):
        difference = row - centroids[first]
        direction = difference / (np.linalg.norm(difference) or 1)
        losses = [np.sum((row - each) ** 2) + SPREAD * (direction @ (row - each)) ** 2 for each in centroids]
        losses[first] = np.inf
        is_best.append(losses[second] <= min(losses) + 1e-5)
    assert np.mean(is_best) > 0.95  # only centroids of near groups are compared


def test_neighbouring_lists_are_more_alike_than_others() -> None:
    centroids, _ = group_rows(*quantize(clustered_rows(ROWS)))
    neighbours = (centroids[1:] * centroids[:-1]).sum(axis=1)
    assert neighbours.mean() > 3 * (centroids @ centroids.T).mean()


def test_the_same_rows_make_the_same_lists() -> None:
    rows = quantize(clustered_rows(ROWS))
    (centroids, numbers), (other_centroids, other_numbers) = group_rows(*rows), group_rows(*rows)
    assert np.array_equal(centroids, other_centroids)
    assert np.array_equal(numbers, other_numbers)


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_few_rows_and_equal_rows_are_grouped_too(rows: int) -> None:
    codes, scales = quantize(np.repeat(clustered_rows(1), rows, axis=0))
    centroids, numbers = group_rows(codes, scales)
    assert numbers.tolist() == [[0, 0]] * rows
    np.testing.assert_allclose(centroids, dequantize(codes[:1], scales[:1]), atol=1e-2)
