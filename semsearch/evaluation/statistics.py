"""What chance does to a mean over questions: its confidence interval, and a test of a difference."""

from dataclasses import dataclass

import numpy as np

from semsearch.engine.tensors import Array

SEED = 7
CONFIDENCE = 0.95
RESAMPLES = 2_000  # resamples of the bootstrap
PERMUTATIONS = 10_000  # permutations of the randomization test
ROUNDS_AT_ONCE = 100  # resamples or permutations that are drawn together; divides both numbers


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
    rounds = range(RESAMPLES // ROUNDS_AT_ONCE)
    means = np.concatenate([values[random.integers(count, size=(ROUNDS_AT_ONCE, count))].mean(1) for _ in rounds])
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Figure(float(values.mean()), float(low), float(high))


def randomization_test(differences: Array[np.float64]) -> float:
    """Return the two-sided p of the paired randomization test (Smucker, Allan and Carterette, 2007).

    differences is (n,). Each permutation gives every difference a random sign; p is the share of permutations whose
    mean is at least as far from 0 as the mean of the differences.
    """
    count = len(differences)
    random = np.random.default_rng(SEED)
    observed = abs(differences.sum()) - 1e-9  # sums of the same numbers in another order differ in their last bits
    reached = 0
    for _ in range(PERMUTATIONS // ROUNDS_AT_ONCE):
        sums = (random.integers(2, size=(ROUNDS_AT_ONCE, count)) * 2 - 1) @ differences
        reached += int(np.count_nonzero(np.abs(sums) >= observed))
    return (reached + 1) / (PERMUTATIONS + 1)
