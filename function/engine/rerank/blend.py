"""The hits of a ranking in the order of two scores: the ranking's own, and that of a reranker for the best ones.

The candidates are the first hits of the ranking. Their new score adds two parts, each stretched so that the lowest of
the candidates has 0 and the highest 1:

    score = weight * reranker's logit + (1 - weight) * score of the ranking

A reranker alone often orders texts worse than a good hybrid search, so its weight, which the manifest has, is below 1.
The hits behind the candidates follow in the order of the ranking. Their score is the ranking's own, stretched in the
same way, so it is 0 or less.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from function.engine.arrays import Array
from function.engine.rerank.reranker import Logits, probabilities
from function.engine.semantic.index import DECIMALS, Hit, Mask

Find = Callable[[int, Mask | None], list[Hit]]  # function/engine/ranking.py explains it


def blended(find: Find, candidates: Sequence[Hit], logits: Logits, weight: float, mode: str) -> Find:
    """Return what finds the first hits of the new order.

    candidates are the first hits of `find`, at least one, and logits (n,) float32 those of their texts. mode is the
    name of the ranking's score in the `scores` of a hit.
    """
    first, second = np.array([hit.score for hit in candidates]), logits.astype(np.float64)
    scores = np.round(weight * _stretch(second) + (1 - weight) * _stretch(first), DECIMALS)
    own = np.round(probabilities(logits), DECIMALS)
    best = [
        Hit(candidates[i].row, float(scores[i]), _scores(candidates[i], mode) | {"rerank": float(own[i])})
        for i in np.argsort(-scores, kind="stable")
    ]
    rows, low = {hit.row for hit in candidates}, float(first.min())
    spread = float(first.max()) - low or 1.0

    def find_blended(count: int, mask: Mask | None) -> list[Hit]:
        allowed = [hit for hit in best if mask is None or mask[hit.row]]
        if len(allowed) >= count:
            return allowed[:count]
        behind = [
            replace(hit, score=min(0.0, round((hit.score - low) / spread, DECIMALS)), scores=_scores(hit, mode))
            for hit in find(count, mask)
            if hit.row not in rows
        ]
        return (allowed + behind)[:count]

    return find_blended


def _scores(hit: Hit, mode: str) -> dict[str, float]:
    return (hit.scores or {}) | {mode: hit.score}


def _stretch(scores: Array[np.float64]) -> Array[np.float64]:
    """Return scores from 0 for the lowest to 1 for the highest, all 1 if they are equal."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
