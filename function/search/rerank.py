"""The best texts of a search, scored again by the bundle's reranker. Imported by the first query with rerank.

The candidates are the best texts of the query's mode. Their new score adds two parts, each stretched so that the lowest
of the candidates has 0 and the highest 1:

    score = weight * reranker's logit + (1 - weight) * score of the mode

A reranker alone often orders texts worse than a good hybrid search, so its weight, which the manifest has, is below 1.
The texts behind the candidates follow in the order of their mode. Their score lacks the reranker's part, and the other
part is 0 or less.

`min_score` is compared with the score of the mode, because the new one only compares the texts of one query.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from function.engine.arrays import Array
from function.engine.loading import LoadedBundle
from function.engine.metadata.columns import Mask
from function.engine.reranker import Logits, probabilities
from function.engine.semantic.index import DECIMALS, Hit
from function.executor import Executor
from function.search.query import Lap, Query, Ranking


async def rerank(
    bundle: LoadedBundle, executor: Executor, query: Query, text: str, ranking: Ranking, lap: Lap
) -> Ranking:
    """Return a ranking whose first hits are the candidates, ordered by both scores."""
    wanted, least = query.rerank, query.min_score
    assert wanted is not None  # a query without rerank does not come here

    def find(count: int, mask: Mask | None) -> list[Hit]:
        hits = ranking.find(count, mask)
        return hits if least is None else [hit for hit in hits if hit.score >= least]

    candidates = await executor.run(lambda: find(wanted, None), is_long=True)
    lap("search")
    if not candidates:
        return replace(ranking, find=find)
    reranker = await executor.run(lambda: bundle.reranker, is_long=True)
    assert reranker is not None  # the search has checked it
    weight = reranker.info.weight
    texts = [bundle.passages.text(hit.row) for hit in candidates]
    pairs = await executor.run(lambda: reranker.tokenize_pairs(text, texts), is_long=True)
    logits = await executor.score(reranker, pairs)
    blended = blend(candidates, logits, weight, query.mode)
    lap("rerank")
    scores = [hit.score for hit in candidates]
    low, spread = min(scores), max(scores) - min(scores) or 1.0
    rows = {hit.row for hit in candidates}

    def find_blended(count: int, mask: Mask | None) -> list[Hit]:
        first = [hit for hit in blended if mask is None or mask[hit.row]]
        if len(first) >= count:
            return first[:count]
        share = (1 - weight) / spread
        others = [hit for hit in find(count, mask) if hit.row not in rows]
        behind = [
            replace(hit, score=min(0.0, round((hit.score - low) * share, DECIMALS)), scores=_scores(hit, query.mode))
            for hit in others
        ]
        return (first + behind)[:count]

    return replace(ranking, find=find_blended)


def blend(hits: Sequence[Hit], logits: Logits, weight: float, mode: str) -> list[Hit]:
    """Return hits with the blended score, best first; hits with equal scores keep their order.

    logits is (n,) float32. `scores` has that of the mode, those that it combines, and the reranker's, 0 to 1.
    """
    first, second = _stretch(np.array([hit.score for hit in hits])), _stretch(logits.astype(np.float64))
    blended = np.round(weight * second + (1 - weight) * first, DECIMALS)
    own = np.round(probabilities(logits), DECIMALS)
    return [
        Hit(hits[i].row, float(blended[i]), _scores(hits[i], mode) | {"rerank": float(own[i])})
        for i in np.argsort(-blended, kind="stable")
    ]


def _scores(hit: Hit, mode: str) -> dict[str, float]:
    return (hit.scores or {}) | {mode: hit.score}


def _stretch(scores: Array[np.float64]) -> Array[np.float64]:
    """Return scores from 0 for the lowest to 1 for the highest, all 1 if they are equal."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
