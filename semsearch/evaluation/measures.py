"""nDCG@10, recall@5, @10 and @100 and MRR@10 of one question, as trec_eval computes them.

A grade of 1 or more is relevant, and 0 is not. The gain of nDCG is the grade itself (Järvelin and Kekäläinen, 2002),
not a power of 2. Scores are compared as float32, and hits with equal scores are in descending order of their ids. So
trec_eval computes the same figures from a run file. Source: https://github.com/usnistgov/trec_eval
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from semsearch.engine.tensors import Array
from semsearch.indexing.questions import Grades

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


FUSION_WEIGHTS = tuple(step / 10 for step in range(11))
FOLDS = 5
REPEATS = 10  # repetitions of the cross-validation, each with other folds
FEWEST = 2 * FOLDS  # minimum number of questions for advice


@dataclass(frozen=True, slots=True)
class Advice:
    """The best weight, and what it changes.

    ndcg has the mean nDCG@10 of each weight over all questions. gain is the difference in nDCG@10 to the current
    weight, measured on questions that the best weight was not chosen with.
    """

    current: float
    best: float
    gain: Figure
    ndcg: dict[float, float]

    @property
    def is_noise(self) -> bool:
        """Return whether chance alone could explain the gain."""
        return self.gain.low <= 0


def weights_with(current: float) -> list[float]:
    """Return the weights to compare, those nearest to the current one first: of equally good ones the first is best."""
    return sorted({*FUSION_WEIGHTS, current}, key=lambda weight: (abs(weight - current), weight))


def advise(
    by_weight: Array[np.float64], weights: Sequence[float], hybrid: Array[np.float64], current: float
) -> Advice | None:
    """Return the best weight and its cross-validated gain, None if there are too few questions.

    by_weight is (n, weights): the nDCG@10 of each question with each weight. hybrid is (n,): the nDCG@10 of each
    question with the current weight. Each fold is measured with the weight that is best for the other folds.
    """
    count = len(hybrid)
    if count < FEWEST:
        return None
    random = np.random.default_rng(SEED)
    held_out = np.zeros(count)
    for _ in range(REPEATS):
        folds = random.permutation(count) % FOLDS
        for fold in range(FOLDS):
            here = folds == fold
            held_out[here] += by_weight[here, _best(by_weight[~here])] / REPEATS
    means = by_weight.mean(0)
    ndcg = {weight: float(mean) for weight, mean in sorted(zip(weights, means, strict=True))}
    return Advice(current, weights[_best(by_weight)], figure(held_out - hybrid), ndcg)


def _best(by_weight: Array[np.float64]) -> int:
    return int(np.argmax(np.round(by_weight.mean(0), 9)))  # rounded, so that the first of equal means is the best


SEMANTIC, KEYWORD, HYBRID = SEARCHES = ("semantic", "keyword", "hybrid")  # modes of a request
RERANKED = {mode: f"{mode}+rerank" for mode in SEARCHES}  # names of modes with `rerank`
# names of modes whose queries the model embeds, although the bundle has a query table
MODELED = {mode: f"{mode}+model" for mode in (SEMANTIC, HYBRID)}
MEASURED_MODES = (*SEARCHES, *MODELED.values(), *RERANKED.values())  # all modes, in the order of tables
MEASURES = ("ndcg@10", "recall@5", "recall@10", "recall@100", "mrr@10")
TITLES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10"}  # names of measures in tables, where they differ
CUT = 10  # number of first hits that nDCG and MRR use
RECALL_CUTS = (5, 10, 100)
DEPTH = max(RECALL_CUTS)  # number of first hits of a question that are measured


def rank(scores: Mapping[str, float]) -> list[str]:
    """Return the ids of scored hits, best first; equal scores are in descending order of the ids."""
    return sorted(sorted(scores, reverse=True), key=lambda name: -float(np.float32(scores[name])))


def measure(found: Sequence[str], relevant: Grades) -> Array[np.float64]:
    """Return the MEASURES of the ids that a search found, best first: (5,) float64 from 0 to 1.

    Raises ValueError if no grade is above 0, because the measures are not defined then.
    """
    grades = np.array([relevant.get(name, 0) for name in found[:DEPTH]], np.float64)
    count = sum(grade > 0 for grade in relevant.values())
    if not count:
        raise ValueError("no grade is above 0")
    hits = np.flatnonzero(grades)
    recalls = [np.count_nonzero(hits < cut) / count for cut in RECALL_CUTS]
    reciprocal_rank = 0.0
    if len(hits) and hits[0] < CUT:
        reciprocal_rank = 1 / (hits[0] + 1)
    ideal = np.sort(np.array(list(relevant.values()), np.float64))[::-1]
    return np.array([_discounted(grades) / _discounted(ideal), *recalls, reciprocal_rank])


def _discounted(grades: Array[np.float64]) -> float:
    top = grades[:CUT]
    return float((top / np.log2(np.arange(2, len(top) + 2))).sum())
