"""The advice finds a known best weight, and does not take noise for a better one."""

from itertools import product

import numpy as np
import pytest

from semsearch.engine.tensors import Array
from semsearch.evaluation.measures import Advice, advise, figure, measure, randomization_test, weights_with


def synthetic(
    best: float | None, questions: int, current: float, seed: int = 1
) -> tuple[Array[np.float64], list[float], Array[np.float64]]:
    """Return nDCG@10 by weight, the weights, and nDCG@10 with the current one.

    The relevant texts are those that the fusion with the best weight puts first; without one they are any texts.
    """
    random = np.random.default_rng(seed)
    weights = weights_with(current)
    found = []
    for _ in range(questions):
        semantic, keyword = random.random(200), 20 * random.random(200)
        likeness = random.random(200) if best is None else best * semantic + (1 - best) * keyword / keyword.max()
        relevant = {str(row): 1 for row in np.argsort(-likeness - 0.02 * random.random(200))[:5]}
        fused = [weight * semantic + (1 - weight) * keyword / keyword.max() for weight in weights]
        found.append([measure([*map(str, np.argsort(-scores)[:10])], relevant)[0] for scores in fused])
    by_weight = np.array(found)
    return by_weight, weights, by_weight[:, 0]


def advice_of(best: float | None, questions: int, current: float, seed: int = 1) -> Advice:
    by_weight, weights, hybrid = synthetic(best, questions, current, seed)
    advice = advise(by_weight, weights, hybrid, current)
    assert advice is not None
    return advice


@pytest.mark.parametrize("best", [0.1, 0.3, 0.6, 0.8])
def test_the_best_weight_of_a_synthetic_set_is_found(best: float) -> None:
    advice = advice_of(best, questions=60, current=0.5)
    assert advice.best == best
    assert not advice.is_noise
    assert advice.gain.value > 0.01


def test_random_relevance_is_noise() -> None:
    verdicts = [advice_of(None, questions=40, current=0.6, seed=seed) for seed in range(20)]
    best_of_all = [advice.ndcg[advice.best] - advice.ndcg[0.6] for advice in verdicts]
    assert np.mean(best_of_all) > 0  # fitted to the same questions, another weight nearly always looks better
    assert np.mean([advice.gain.value for advice in verdicts]) < np.mean(best_of_all) / 2
    assert sum(not advice.is_noise for advice in verdicts) <= 2  # one in 20 is what an interval of 95 % allows


def test_the_current_weight_is_compared_although_it_is_no_round_one() -> None:
    assert weights_with(0.65)[0] == 0.65
    assert sorted(weights_with(0.6)) == [step / 10 for step in range(11)]
    assert weights_with(None)[0] == 0.5


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
