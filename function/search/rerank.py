"""The best texts of a search, scored again by the bundle's reranker. Imported by the first query with rerank.

The candidates are the best texts of the query's mode; function/engine/rerank/blend.py orders them by both scores.
`min_score` is compared with the score of the mode, because the new one only compares the texts of one query.
"""

from dataclasses import replace

from function.engine.loading import LoadedTexts
from function.engine.rerank.blend import blended
from function.engine.semantic.index import Hit, Mask
from function.executor import Executor
from function.search.query import Lap, Query, Ranking


async def rerank(
    bundle: LoadedTexts, executor: Executor, query: Query, text: str, ranking: Ranking, lap: Lap
) -> Ranking:
    """Return a ranking whose first hits are the candidates, ordered by both scores."""
    wanted, least, mode = query.rerank, query.min_score, query.mode
    assert wanted is not None  # the caller checked it
    assert mode is not None  # the caller chose it

    def find(count: int, mask: Mask | None) -> list[Hit]:
        hits = ranking.find(count, mask)
        return hits if least is None else [hit for hit in hits if hit.score >= least]

    candidates = await executor.run(lambda: find(wanted, None), is_long=True)
    lap("search")
    if not candidates:
        return replace(ranking, find=find)
    reranker = await executor.run(lambda: bundle.reranker, is_long=True)
    assert reranker is not None  # the search has checked it
    texts = [bundle.passages.text(hit.row) for hit in candidates]
    pairs = await executor.run(lambda: reranker.tokenize_pairs(text, texts), is_long=True)
    logits = await executor.score(reranker, pairs)
    lap("rerank")
    return replace(ranking, find=blended(find, candidates, logits, reranker.info.weight, mode))
