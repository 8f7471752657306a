"""How much the figures of a few questions vary by chance. Every call draws the same random numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from function.engine.arrays import Array

SEED = 7
CONFIDENCE = 0.95
RESAMPLES = 2_000  # resamples of the bootstrap
PERMUTATIONS = 10_000  # permutations of the randomization test
NUMBERS_AT_ONCE = 2_000_000  # drawn together: 16 MB


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions, and its 95 % confidence interval."""

    value: float
    low: float
    high: float


def figure(values: Array[np.float64]) -> Figure:
    """Return the mean of (n,) values, and the percentile bootstrap interval of it (Efron and Tibshirani, 1993)."""
    count = len(values)
    random = np.random.default_rng(SEED)
    means = np.concatenate([values[random.integers(count, size=(n, count))].mean(1) for n in _parts(RESAMPLES, count)])
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Figure(float(values.mean()), float(low), float(high))


def randomization_test(differences: Array[np.float64]) -> float:
    """Return the share of random signs of the (n,) differences whose mean is as far from 0 as the mean is or further.

    This is the two-sided p of the paired randomization test (Smucker, Allan and Carterette, 2007).
    """
    count = len(differences)
    random = np.random.default_rng(SEED)
    observed = abs(differences.sum()) - 1e-9  # sums of the same numbers in another order differ in their last bits
    reached = 0
    for n in _parts(PERMUTATIONS, count):
        sums = (random.integers(2, size=(n, count)) * 2 - 1) @ differences
        reached += int(np.count_nonzero(np.abs(sums) >= observed))
    return (reached + 1) / (PERMUTATIONS + 1)


def _parts(rounds: int, count: int) -> Iterator[int]:
    """Yield numbers of rounds that can be drawn at once, each with this many numbers."""
    size = max(1, NUMBERS_AT_ONCE // count)
    for begin in range(0, rounds, size):
        yield min(size, rounds - begin)
