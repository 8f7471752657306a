"""The advice finds a known best weight, and does not take noise for a better one."""

import numpy as np
import pytest

from export.evaluation.fusion_weight import Advice, advise, weights_with
from export.evaluation.measures import measure
from function.engine.arrays import Array


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


def test_the_current_weight_is_kept_where_it_is_best() -> None:
    advice = advice_of(0.65, questions=60, current=0.65)
    assert (advice.best, advice.current) == (0.65, 0.65)
    assert advice.is_noise


def test_random_relevance_is_noise() -> None:
    verdicts = [advice_of(None, questions=40, current=0.6, seed=seed) for seed in range(40)]
    best_of_all = [advice.ndcg[advice.best] - advice.ndcg[0.6] for advice in verdicts]
    assert np.mean(best_of_all) > 0  # fitted to the same questions, another weight nearly always looks better
    assert np.mean([advice.gain.value for advice in verdicts]) < np.mean(best_of_all) / 2
    assert sum(not advice.is_noise for advice in verdicts) <= 4  # one in 20 is what an interval of 95 % allows


def test_the_current_weight_is_compared_although_it_is_no_round_one() -> None:
    assert weights_with(0.65)[0] == 0.65
    assert sorted(weights_with(0.6)) == [step / 10 for step in range(11)]
    assert weights_with(None)[0] == 0.5
