"""The largest of many values, against sorting all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.engine.arrays import AnyArray
from function.engine.semantic.topk import SAMPLE, largest


def first_of_sorted(values: AnyArray, count: int) -> list[int]:
    """Return the places of the largest values, of equal ones the first."""
    return sorted(np.lexsort((np.arange(len(values)), -values.astype(np.float64)))[:count].tolist())


@given(
    rows=st.integers(1, 20_000),
    share=st.floats(0, 1),
    levels=st.sampled_from([1, 2, 40, 100_000]),
    dtype=st.sampled_from([np.uint16, np.float32]),
    seed=st.integers(0, 1 << 16),
)
def test_the_largest_values_are_those_of_sorting(
    rows: int, share: float, levels: int, dtype: type[np.generic], seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, levels, rows).astype(dtype)
    count = max(1, int(share * rows))
    assert largest(values, count).tolist() == first_of_sorted(values, count)


@pytest.mark.parametrize("count", [10, 500])
def test_values_that_the_sample_misses_are_found(count: int) -> None:
    values = np.zeros(SAMPLE * 20, np.uint16)
    values[::20] = 7  # all that is sampled
    values[1 : 20 * count : 20] = 9
    assert largest(values, count).tolist() == first_of_sorted(values, count)
    falling = np.arange(SAMPLE * 20, 0, -1).astype(np.float32)
    falling[::20] += 1e6  # nearly nothing passes a threshold from these
    assert largest(falling, SAMPLE + count).tolist() == first_of_sorted(falling, SAMPLE + count)
