"""Intervals cover the truth as often as they say, and the test agrees with all permutations."""

from itertools import product

import numpy as np

from export.evaluation.statistics import figure, randomization_test


def test_intervals_cover_the_true_mean() -> None:
    random = np.random.default_rng(1)
    figures = [figure(random.beta(2, 1, size=60)) for _ in range(300)]
    covered = np.mean([one.low <= 2 / 3 <= one.high for one in figures])
    assert 0.91 <= covered <= 0.98


def test_the_p_of_the_test_is_that_of_all_signs() -> None:
    random = np.random.default_rng(2)
    for shift in (0.0, 0.1, 0.5):
        differences = np.round(random.normal(shift, 0.4, size=12), 2)
        sums = np.array([np.dot(signs, differences) for signs in product((-1, 1), repeat=12)])
        exact = np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9)
        assert abs(randomization_test(differences) - exact) < 0.015


def test_equal_bundles_do_not_differ() -> None:
    assert randomization_test(np.zeros(20)) == 1


def test_a_large_set_is_drawn_in_parts_and_figures_repeat() -> None:
    values = np.random.default_rng(3).random(1_200)
    assert figure(values) == figure(values)
    assert randomization_test(values - 0.5) == randomization_test(values - 0.5)
    assert figure(values).low < values.mean() < figure(values).high
