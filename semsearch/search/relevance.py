"""What is said if the best hit of a search is below the floor: that nothing relevant was found.

The hits are still returned. `"min_score": "floor"` leaves them out.
"""

from dataclasses import replace

from semsearch.engine.loading import AnyBundle
from semsearch.search.query import Query, SearchFunction
from semsearch.search.results import Found


async def nothing_relevant(query: Query, found: Found, bundle: AnyBundle, search: SearchFunction) -> str | None:
    """Return a line which says that nothing relevant was found, None if the best hit reaches the floor.

    `found` is what `search` has found for the query. None also if no floor is for its scores: it has no text or has a
    vector, a min_score or a fusion_weight of its own, or the index has no floor for the mode.
    """
    if query.text is None or query.vector is not None or query.min_score is not None or query.fusion_weight is not None:
        return None
    corpus = bundle.manifest.corpus
    measured = corpus.floor.get(query.mode or _default_mode(bundle))
    if measured is None or measured.score is None:
        return None
    boosts = corpus.boost if query.boost is None else query.boost
    if boosts or query.offset or query.sort or query.rerank is not None:
        # the floor is compared with the best score of all, before boosts and reranking
        plain = replace(query, num_results=1, offset=0, sort=None, rerank=None, group_by=None, facets=(), include=())
        found = await search(replace(plain, highlights=False, boost={} if boosts else None), lambda phase: None)
    best = max(found.scores, default=measured.score)
    if best >= measured.score:
        return None
    return f"nothing relevant: the best score {best:.2f} is below {measured.score:.2f}"


def _default_mode(bundle: AnyBundle) -> str:
    """Return the mode of a text without a mode."""
    if bundle.manifest.corpus.keywords is None:
        return "semantic"
    return "keyword" if bundle.embedder is None else "hybrid"
