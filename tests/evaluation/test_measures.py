"""The measures are those of trec_eval; the advice finds a known best weight and takes no noise for a better one."""

from itertools import product

import numpy as np
import pytest

from semsearch.evaluation.advice import Advice, advise, weights_with
from semsearch.evaluation.measures import MEASURES, measure, rank
from semsearch.evaluation.statistics import Figure, figure, randomization_test

THEIRS = ("ndcg_cut_10", "recall_5", "recall_10", "recall_100")
RUNS = 2_000


def test_the_measures_of_random_runs_are_those_of_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier has no wheels for this processor")
    random = np.random.default_rng(7)
    judgements: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, float]] = {}
    for question in map(str, range(RUNS)):
        names = [f"{text}-é" if text % 7 == 0 else str(text) for text in random.permutation(130).tolist()]
        judged = random.integers(1, 40)
        grades = random.integers(0, 4, judged)  # 0 is judged and not relevant
        grades[0] = max(1, grades[0])
        judgements[question] = dict(zip(names, grades.tolist(), strict=False))
        # some judged texts are found, some are not, and most that are found were not judged
        found = [names[place] for place in random.permutation(130)[: random.integers(1, 130)]]
        digits = int(random.integers(0, 9))  # few digits make many ties
        scores = np.round(random.random(len(found)), digits) + random.choice([0, 10_000])  # float32 rounds large ones
        runs[question] = dict(zip(found, scores.tolist(), strict=True))
    theirs = pytrec_eval.RelevanceEvaluator(judgements, THEIRS).evaluate(runs)
    first_ten = {
        question: {name: float(-place) for place, name in enumerate(rank(run)[:10])} for question, run in runs.items()
    }
    cut = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(first_ten)
    whole = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(runs)
    for question, run in runs.items():
        ours = dict(zip(MEASURES, measure(rank(run), judgements[question]), strict=True))
        expected = [*(theirs[question][name] for name in THEIRS), cut[question]["recip_rank"]]
        assert list(ours.values()) == pytest.approx(expected, abs=5e-7)
        if whole[question]["recip_rank"] >= 0.1:  # the first ten that are ranked here are trec_eval's own
            assert ours["mrr@10"] == pytest.approx(whole[question]["recip_rank"], abs=5e-7)


def test_worked_values() -> None:
    # gains 3 and 1 at the places 2 and 4; the best order would be 3, 2, 1
    found = measure(["x", "a", "y", "c"], {"a": 3, "b": 2, "c": 1, "x": 0})
    ideal = 3 + 2 / np.log2(3) + 1 / np.log2(4)
    ndcg = (3 / np.log2(3) + 1 / np.log2(5)) / ideal
    assert found.tolist() == pytest.approx([ndcg, 2 / 3, 2 / 3, 2 / 3, 1 / 2])


def advice_of(best: float | None, questions: int, current: float, seed: int = 1) -> Advice:
    """Return the advice for questions whose relevant texts are those that the fusion with the best weight puts first.

    Without a best weight they are any texts.
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
    advice = advise(by_weight, weights, by_weight[:, 0], current)
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
    assert randomization_test(np.zeros(20)) == 1


def test_only_the_first_hits_count_and_a_question_needs_a_relevant_text() -> None:
    found = [f"x{place}" for place in range(1, 120)]
    assert measure(found, {"x10": 1}).tolist() == pytest.approx([1 / np.log2(11), 0, 1, 1, 0.1])
    assert measure(found, {"x11": 1}).tolist() == [0, 0, 0, 1, 0]
    assert measure(found, {"x5": 1, "x6": 1}).tolist()[1:3] == [0.5, 1]
    assert measure(found, {"x100": 1}).tolist() == [0, 0, 0, 1, 0]
    assert measure(found, {"x101": 1}).tolist() == measure([], {"x101": 1}).tolist() == [0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="no grade is above 0"):
        measure(found, {"x1": 0})


def test_equal_scores_are_in_descending_order_of_their_ids() -> None:
    assert rank({"a": 0.5, "c": 0.5 + 1e-12, "b": 0.5, "d": 0.75}) == ["d", "c", "b", "a"]


def test_a_figure_and_a_p_are_the_same_each_time() -> None:
    values = np.array([0.0, 0.25, 0.5, 1.0])
    assert figure(values) == Figure(0.4375, 0.125, 0.8125)
    assert randomization_test(np.array([0.5, 0.25, 0.125])) == pytest.approx(0.25, abs=0.01)
    assert randomization_test(np.array([-0.5, -0.25, 0.75, -0.5])) == randomization_test(
        np.array([0.5, 0.25, -0.75, 0.5])
    )


def test_advice_needs_ten_questions_and_prefers_the_weight_that_is_nearest_to_the_current_one() -> None:
    weights = weights_with(0.25)
    assert weights[:4] == [0.25, 0.2, 0.3, 0.1]
    ndcg = np.zeros((10, len(weights)))
    ndcg[:, [weights.index(0.9), weights.index(0.3)]] = 0.5
    assert advise(ndcg[:9], weights, ndcg[:9, 0], 0.25) is None
    advice = advise(ndcg, weights, np.full(10, 0.125), 0.25)
    assert advice is not None
    assert (advice.current, advice.best, advice.is_noise) == (0.25, 0.3, False)
    assert advice.gain.value == pytest.approx(0.375)
    assert advice.ndcg == {weight: 0.5 * (weight in (0.3, 0.9)) for weight in sorted(weights)}
