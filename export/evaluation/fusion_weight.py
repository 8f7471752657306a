"""What another fusion weight would give, estimated with questions that the weight was not chosen with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export.evaluation.statistics import SEED, Figure, figure
from function.engine.arrays import Array

WEIGHTS = tuple(step / 10 for step in range(11))
FOLDS = 5
REPEATS = 10  # of the cross-validation, each with other folds
FEWEST = 2 * FOLDS  # questions


@dataclass(frozen=True, slots=True)
class Advice:
    """Another weight, and what it would change.

    ndcg has the mean nDCG@10 of each weight over all questions. gain is the difference in nDCG@10 to what the bundle
    has, measured on questions that the weight was not chosen with.
    """

    current: float | None  # None if the bundle fuses ranks
    best: float
    gain: Figure
    ndcg: dict[float, float]

    @property
    def is_noise(self) -> bool:
        """Return whether chance alone could explain the gain."""
        return self.gain.low <= 0


def weights_with(current: float | None) -> list[float]:
    """Return the weights to compare, the nearest to the current one first; of equally good ones the first is best."""
    near = 0.5 if current is None else current
    return sorted({*WEIGHTS, near}, key=lambda weight: (abs(weight - near), weight))


def advise(
    by_weight: Array[np.float64], weights: Sequence[float], hybrid: Array[np.float64], current: float | None
) -> Advice | None:
    """Return the best weight and its cross-validated gain, None if there are too few questions.

    by_weight is (n, weights): the nDCG@10 of each question with each weight. hybrid is (n,): what the bundle reaches.
    Each fold is measured with the weight that is best for the others.
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
    return int(np.argmax(np.round(by_weight.mean(0), 9)))  # rounded: the first of equal means is the best
