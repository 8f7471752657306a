"""The measures are those of trec_eval."""

import numpy as np
import pytest

from semsearch.evaluation.measures import MEASURES, measure, rank

pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier has no wheels for this processor")

THEIRS = ("ndcg_cut_10", "recall_5", "recall_10", "recall_100")
RUNS = 2_000


def test_the_measures_of_random_runs_are_those_of_trec_eval() -> None:
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
