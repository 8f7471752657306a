"""Meaning and words together: the best rows of both searches, each scored by both, in one order.

"convex" adds the two scores: weight * cosine + (1 - weight) * BM25 / the best BM25 score of the query. "rrf" is
reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): it adds 1 / (60 + rank) over the two orders, so it ignores
how much better one row is than the next.
"""

from typing import TYPE_CHECKING

import numpy as np

from function.engine.arrays import Array
from function.engine.bundle import CONVEX, KeywordsInfo
from function.engine.keyword.matches import Matches
from function.engine.quantization import Embeddings
from function.engine.semantic.index import DECIMALS, MOST_HITS, Hit, Index, Mask

if TYPE_CHECKING:
    from function.engine.semantic.remote_index import RemoteIndex

# Rows that each search adds at least: fixed, so that the first results do not depend on num_results.
CANDIDATES = 2 * MOST_HITS
RRF_RANK = 60  # the constant of the paper: the higher, the less the first ranks stand out


def fuse(
    index: "Index | RemoteIndex",
    query: Embeddings,
    matches: Matches,
    info: KeywordsInfo,
    top_k: int,
    allowed: Mask | None = None,
    *,
    exact: bool = False,
) -> list[Hit]:
    """Return the top_k rows by both scores, best first; rows with equal scores are in the order of the corpus.

    The `scores` of a hit are its cosine to the query, "semantic", and its BM25 score, "keyword".

    query is (dim,) float32 of unit length; exact compares it with every row. allowed is (rows,) bool: only rows where
    it is true are returned; None means the rows that `matches` allows. It does not change the scores of "convex".
    """
    within = matches if allowed is None else matches.within(allowed)
    count = max(CANDIDATES, 2 * top_k)
    similar, _ = index.best(query, count, within.allowed, exact=exact)
    rows = np.union1d(similar, within.best_rows(count))
    keyword = within.scores_of(rows).astype(np.float64)
    highest = keyword.max(initial=0) if within is matches else matches.highest  # `rows` has the best one
    if info.fusion == CONVEX and not isinstance(index, Index):
        others = (1 - info.fusion_weight) * keyword / (highest or 1)
        rows = index.within_reach(rows, info.fusion_weight, others, top_k)
        keyword = within.scores_of(rows).astype(np.float64)
    semantic = index.scores(query, rows)
    if info.fusion == CONVEX:
        scores = info.fusion_weight * semantic + (1 - info.fusion_weight) * keyword / (highest or 1)
    else:
        scores = _reciprocal_rank(semantic) + np.where(keyword > 0, _reciprocal_rank(keyword), 0)
    scores = np.round(scores, DECIMALS)
    best = np.lexsort((rows, -scores))[:top_k]
    keyword = np.round(keyword, DECIMALS)
    return [
        Hit(int(rows[i]), float(scores[i]), {"semantic": float(semantic[i]), "keyword": float(keyword[i])})
        for i in best
    ]


def _reciprocal_rank(scores: Array[np.float64]) -> Array[np.float64]:
    """Return 1 / (60 + rank) for each score, where the best has rank 1 and equal scores share the better rank."""
    return 1 / (RRF_RANK + np.searchsorted(np.sort(-scores), -scores) + 1)
