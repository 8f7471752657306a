"""The weight of a hybrid search that is best for some questions, and what it gains on others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semsearch.engine.tensors import Array
from semsearch.evaluation.statistics import SEED, Figure, figure

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
