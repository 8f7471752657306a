"""Meaning and words together: the best rows of both searches, each scored by both, in one order.

The score of a row is weight * cosine + (1 - weight) * BM25 / divisor. The divisor is the best BM25 score of the query,
or ATTAINABLE of the score that a text with all words of the query could reach, whichever is larger. The second
is larger where even the best text has few words of the query, or only its frequent ones: then words count less.
docs/relevance.md has the comparison with other divisors.
"""

import numpy as np

from semsearch.engine.bundle import KeywordsInfo
from semsearch.engine.hits import DECIMALS, MOST_HITS, Mask, Rows, Scored
from semsearch.engine.keyword.matches import Matches
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import FEW_HITS, Index

# Minimum rows of each search. It is constant, so that the first results do not change with the number of results.
FUSED_CANDIDATES = 2 * MOST_HITS
# Up to this many results, semantic search first adds FEW_HITS rows only, which takes much less time. The rest of
# FUSED_CANDIDATES is added if one of them could be a result, which few queries need.
FEW_RESULTS = 10
# Chosen on SciFact, CISI and an invented catalogue together, with the default weight (docs/relevance.md).
ATTAINABLE = 0.7
DEEPER = 8  # how many times as many rows an exact search adds if the first ones are not enough


def fuse(
    index: Index,
    query: Embeddings,
    matches: Matches,
    info: KeywordsInfo,
    top_k: int,
    allowed: Mask | None = None,
    *,
    exact: bool = False,
    rough: bool = False,
) -> Scored:
    """Return the top_k rows by both scores, best first; rows with equal scores are in the order of the corpus.

    The `parts` are the cosine to the query, "semantic", and the BM25 score, "keyword".

    query is (dim,) float32 of unit length. The candidates are the best rows of the search by meaning and of that by
    words; with `exact`, all rows are. `rough` takes fewer candidates if top_k is above MOST_HITS. allowed is (rows,)
    bool: only rows where it is true are returned; None means the rows that `matches` allows. A mask changes no score.
    """
    within = matches if allowed is None else matches.within(allowed)
    count = max(FUSED_CANDIDATES, top_k if rough else 2 * top_k)
    by_words = within.best_rows(count)
    ends = within.scores_of(by_words[[0, -1]]) if len(by_words) else np.zeros(2, np.float32)
    highest = float(ends[0]) if within.allowed is None else matches.highest
    divisor = max(highest, ATTAINABLE * matches.attainable) or 1.0
    depth = FEW_HITS if top_k <= FEW_RESULTS else count
    while True:
        similar, cosines = index.best(query, depth, within.allowed, exact=exact, rough=rough)
        rows = _union(similar, by_words)
        scored = _score(index, query, within, divisor, info, rows)
        best = scored.take(np.argsort(-scored.scores, kind="stable")[:top_k])
        if len(similar) < depth or (depth == count and not exact):
            return best
        # upper bound for a row that neither search has found: the last cosine and the last BM25 score
        last = 0.0
        if len(by_words) == count:
            last = float(within.scores_of(by_words[-1:])[0])
        bound = np.round(info.fusion_weight * cosines[-1] + (1 - info.fusion_weight) * last / divisor, DECIMALS)
        if np.count_nonzero(scored.scores > bound) >= max(top_k, FEW_RESULTS):
            return best
        if depth == count:
            count *= DEEPER
            by_words = within.best_rows(count)
        depth = count


def _union(one: Rows, other: Rows) -> Rows:
    """Return the rows of both, ascending, each once. np.union1d would import numpy.ma."""
    rows = np.concatenate((one, other))
    rows.sort()
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return rows[is_first]


def _score(index: Index, query: Embeddings, matches: Matches, divisor: float, info: KeywordsInfo, rows: Rows) -> Scored:
    keyword = matches.scores_of(rows).astype(np.float64)
    semantic = index.scores(query, rows)
    scores = info.fusion_weight * semantic + (1 - info.fusion_weight) * keyword / divisor
    parts = {"semantic": semantic, "keyword": np.round(keyword, DECIMALS)}
    return Scored(rows, np.round(scores, DECIMALS), parts)
