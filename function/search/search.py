"""The search of a bundle with its texts: from a query to results."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from function.engine.bundle import CONVEX
from function.engine.loading import Loaded, LoadedBundle, LoadedModel, LoadedTexts
from function.engine.quantization import Embeddings
from function.engine.semantic.index import Hit, Index
from function.executor import Executor
from function.search.query import (
    Found,
    Lap,
    Query,
    Ranking,
    Search,
    SearchError,
    default_mode,
    embed_query,
    filter_error,
    show_hit,
)

if TYPE_CHECKING:
    from function.engine.metadata.columns import Columns, Mask
    from function.engine.semantic.remote_index import RemoteIndex

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"
NO_RERANKER = "this bundle has no reranker; leave it out, or export the bundle again with --rerank MODEL"
ONLY_RANKS = "this bundle combines ranks (rrf); leave it out, or export the texts again with --fusion convex"
FEW_ROWS = 100_000  # number of rows that are searched in about a millisecond
SHORT_QUERY = 200  # characters of a text whose words are looked up in about a millisecond


def make_search(bundle: Loaded, executor: Executor) -> Search:
    """Return the search of a bundle; columns and keywords are opened by the first query that needs them.

    The search raises SearchError if a field names a column that cannot be used, or if the mode needs keywords and there
    are none. It raises BackendError if texts or embeddings are in another service, and that service fails.
    """
    if isinstance(bundle, LoadedModel):
        from function.search.s3_vectors import make_vectors_search  # only a bundle without texts of its own needs it

        return make_vectors_search(bundle, executor)
    if isinstance(bundle, LoadedBundle):
        index = bundle.index
        return _make_search(bundle, lambda query, allowed: index, executor)
    from function.search.kept_texts import make_kept_search  # only a bundle without vectors of its own needs it

    return make_kept_search(bundle, executor, _make_search)


def _make_search(
    bundle: LoadedTexts, index_of: "Callable[[Query, Mask | None], Index | RemoteIndex]", executor: Executor
) -> Search:
    """Return the search of a bundle; index_of returns the index for a query and the rows that its filter keeps."""
    passages = bundle.passages

    async def search(query: Query, lap: Lap) -> Found:
        if query.mode is None:
            query = replace(query, mode=default_mode(bundle.manifest, query.id))
        allowed, filtered, is_large = bundle.allowed, None, len(passages) > FEW_ROWS
        if query.rerank is not None and bundle.manifest.rerank is None:
            raise SearchError(f"rerank: found {query.rerank} candidates, but {NO_RERANKER}")
        if query.filter is not None:
            condition = query.filter
            filtered = await executor.run(lambda: _filtered_rows(condition, bundle.columns), is_long=True)
            allowed = bundle.among_allowed(filtered)
            lap("filter")
        index = index_of(query, filtered)
        text, row, refined = query.text, None, None
        if not query.is_plain:
            from function.search.refinements import RefinedQuery  # most queries do not need it

            refined = await executor.run(lambda: RefinedQuery(bundle, query, allowed), is_long=True)
            text, row, allowed = refined.text, refined.row, refined.allowed
            if text is None:
                found = await executor.run(refined.list_texts, is_long=True)
                lap("search")
                return found
        assert text is not None  # a plain query has a text
        ranking = await _rank(bundle, index, executor, query, text, allowed, lap, row)
        if query.rerank is not None:
            from function.search.rerank import rerank  # most queries do not need it

            ranking = await rerank(bundle, executor, query, text, ranking, lap)
        if refined is not None:
            found = await executor.run(partial(refined.search, ranking), is_long=True)
            lap("search")
            return found
        hits = await executor.run(lambda: ranking.find(query.num_results, None), is_long=is_large)
        lap("keyword" if query.mode == "keyword" and query.rerank is None else "search")
        results = [show_hit(passages, hit, query.include) for hit in hits]
        return Found(results, ranking.is_truncated, corrected=ranking.corrected)

    return search


async def _rank(
    bundle: LoadedTexts,
    index: "Index | RemoteIndex",
    executor: Executor,
    query: Query,
    text: str,
    allowed: "Mask | None",
    lap: Lap,
    row: int | None = None,
) -> Ranking:
    """Return the ranking of the rows of `allowed` in the query's mode.

    With `row`, the stored embedding of that row is the query's.
    Raises SearchError if the mode needs keywords and there are none.
    """
    mode, weight = query.mode, query.fusion_weight

    async def embed() -> tuple[Embeddings, bool]:
        if row is None:
            return await embed_query(executor, text, lap)
        return await executor.run(lambda: index.embedding(row)), False

    if mode == "semantic":
        embedding, is_truncated = await embed()

        def find_similar(count: int, mask: "Mask | None") -> list[Hit]:
            return index.search(embedding, count, allowed if mask is None else mask, exact=query.exact)

        return Ranking(find_similar, lambda: allowed, is_truncated)
    if (keywords := bundle.keywords) is None:
        raise SearchError(f"mode: found {mode!r}, but {NO_KEYWORDS}")
    info = keywords.info
    if weight is not None:
        if info.fusion != CONVEX:
            raise SearchError(f"fusion_weight: found {weight}, but {ONLY_RANKS}")
        info = replace(info, fusion_weight=weight)
    is_long = len(bundle.passages) > FEW_ROWS or len(text) > SHORT_QUERY
    matches = await executor.run(
        lambda: keywords.match(text, allowed, prefix=query.prefix and row is None, correct=query.correct),
        is_long=is_long,
    )
    if mode == "keyword":
        is_truncated = matches.is_truncated
        return Ranking(matches.best, lambda: matches.scores > 0, is_truncated, matches.corrected, matches.completed)
    from function.engine.hybrid import fuse  # only a hybrid search needs it

    lap("keyword")
    embedding, is_truncated = await embed()

    def find_both(count: int, mask: "Mask | None") -> list[Hit]:
        return fuse(index, embedding, matches, info, count, mask, exact=query.exact)

    is_truncated |= matches.is_truncated
    return Ranking(find_both, lambda: matches.allowed, is_truncated, matches.corrected, matches.completed)


def _filtered_rows(condition: dict[str, Any], columns: "Columns") -> "Mask":
    """Return the rows that a filter keeps, (rows,) bool. Raises SearchError, which lists the columns."""
    from function.engine.metadata.filters import FilterError, allowed_rows  # only a query with a filter needs it

    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        raise filter_error(error, columns.kinds) from None
