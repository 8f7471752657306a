"""Signs as bits, and how many of them differ, against counting them one by one."""

import numpy as np
import pytest

from function.engine.semantic.binary import ROWS_AT_ONCE, count_differing, signs, unpack_signs


def test_eight_signs_are_a_byte_the_first_one_its_highest_bit() -> None:
    values = np.array([[0.5, -0.5, 0.0, 1e-9, -1e-9, 2.0, -3.0, 4.0, 5.0, -6.0]], np.float32)
    assert signs(values).view(np.uint8).tolist() == [[0b10010101, 0b10000000, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("dim", [1, 37, 64, 384, 1024])
def test_differing_signs_are_counted(dim: int) -> None:
    values = np.random.default_rng(seed=dim).standard_normal((300, dim))
    values[8] = -values[7]
    expected = ((values > 0) != (values[7] > 0)).sum(axis=1)
    words = signs(values)
    assert words.shape == (300, -(-dim // 64))
    np.testing.assert_array_equal(count_differing(words[7:8], words.T), expected)
    np.testing.assert_array_equal(unpack_signs(words, dim), values > 0)
    np.testing.assert_array_equal(unpack_signs(words.T[:, 3:5].T, dim), values[3:5] > 0)


def test_more_rows_are_counted_than_are_compared_at_once() -> None:
    words = np.random.default_rng(seed=3).integers(0, 1 << 63, (2, ROWS_AT_ONCE + 5), np.uint64)
    expected = np.bitwise_count(words ^ words[:, -1:]).sum(axis=0)
    np.testing.assert_array_equal(count_differing(words[:, -1:].T, words), expected)
