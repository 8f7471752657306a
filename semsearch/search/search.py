"""From a query to results, by the same steps wherever the texts and the embeddings are: in the bundle or in S3 Vectors.

Columns, keywords and reranker are opened by the first query that needs them.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from semsearch.app.telemetry import Log
from semsearch.engine.bundle import BY_MODEL, BY_TABLE, CONVEX
from semsearch.engine.loading import Loaded, LoadedBundle, LoadedTexts
from semsearch.engine.passages import Passage, Passages
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Hit, Index, Scored
from semsearch.search.executor import Executor
from semsearch.search.query import Found, Lap, Query, Ranking, Search, SearchError, filter_error, show_hit

if TYPE_CHECKING:
    from semsearch.engine.metadata.columns import Columns, Mask

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"
NO_RERANKER = "this bundle has no reranker; leave it out, or export the bundle again with --rerank MODEL"
ONLY_RANKS = "this bundle combines ranks (rrf); leave it out, or export the texts again with --fusion convex"
FEW_ROWS = 100_000  # number of rows that are searched in about a millisecond
SHORT_QUERY = 200  # characters of a text whose words are looked up in about a millisecond


def make_search(bundle: Loaded, executor: Executor) -> Search:
    """Return the search of a bundle.

    The search raises SearchError if a field names a column that cannot be used, or if the mode needs keywords and there
    are none. It raises BackendError if texts or embeddings are in another service, and that service fails.
    """
    return _BundleSearch(bundle, executor).search


class _BundleSearch:
    """An open bundle, and the executor of its searches."""

    def __init__(self, bundle: Loaded, executor: Executor) -> None:
        self._bundle, self._executor = bundle, executor
        self._run: Callable[..., Awaitable[Any]] = executor.run
        if not isinstance(bundle, LoadedBundle):
            from semsearch.aws.s3vectors.index import (
                RemoteVectors,  # only a bundle without embeddings of its own needs it
            )

            self._remote = RemoteVectors(bundle.manifest)
            # all work of a search runs where it can wait for S3 Vectors
            self._run = lambda work, *, is_long=False: executor.wait(work)

    @property
    def _is_large(self) -> bool:
        return self._bundle.manifest.corpus.rows > FEW_ROWS

    async def search(self, query: Query, lap: Lap) -> Found:
        bundle, run = self._bundle, self._run
        if query.mode is None:
            # with an id the query is a stored text, which shares words with nearly every other
            is_hybrid = bundle.manifest.corpus.keywords is not None and query.id is None
            query = replace(query, mode="hybrid" if is_hybrid else "semantic")
        if query.rerank is not None and bundle.manifest.rerank is None:
            raise SearchError(f"rerank: found {query.rerank} candidates, but {NO_RERANKER}")
        if not isinstance(bundle, LoadedBundle):
            self._remote.check(query)
        allowed, filtered = None, None
        if isinstance(bundle, LoadedTexts):
            allowed = bundle.allowed
            if query.filter is not None:
                filtered = await run(partial(_filtered_rows, query.filter, bundle), is_long=True)
                allowed = bundle.among_allowed(filtered)
                lap("filter")
        index, passages = await self._open(query, filtered)
        text, row, refined = query.text, None, None
        if not query.is_plain:
            from semsearch.search.refinements import RefinedQuery  # most queries do not need it

            refined = await run(partial(RefinedQuery, bundle, passages, query, allowed), is_long=True)
            text, row, allowed = refined.text, refined.row, refined.allowed
            if text is None:
                found: Found = await run(refined.list_texts, is_long=True)
                lap("search")
                return found
        assert text is not None  # a plain query has a text
        ranking = await self._rank(index, query, text, allowed, lap, row)
        boost = bundle.manifest.corpus.boost if query.boost is None else query.boost
        if boost and isinstance(bundle, LoadedTexts):
            ranking = await run(partial(_boosted, ranking, boost, bundle, str(query.mode)), is_long=True)
        if query.min_score is not None:
            ranking = ranking.at_least(query.min_score)
        if query.rerank is not None:
            from semsearch.search.refinements import rerank  # most queries do not need it

            assert isinstance(bundle, LoadedTexts)  # it has a reranker
            ranking = await rerank(bundle, self._executor, query, text, ranking, lap)
        if refined is not None:
            found = await run(partial(refined.search, ranking), is_long=True)
            lap("search")
            return replace(found, queries=ranking.queries)
        hits = await run(partial(ranking.find, query.num_results, None), is_long=self._is_large)
        lap("keyword" if query.mode == "keyword" and query.rerank is None else "search")
        results = [show_hit(passages, hit, query.include) for hit in hits]
        return Found(results, ranking.is_truncated, corrected=ranking.corrected, queries=ranking.queries)

    async def _open(self, query: Query, filtered: "Mask | None") -> tuple[Index, Passages | Mapping[int, Passage]]:
        """Return the index and the passages for a query; filtered (rows,) bool has the rows that its filter keeps."""
        bundle = self._bundle
        if isinstance(bundle, LoadedBundle):
            return bundle.index, bundle.passages
        index = await self._run(partial(self._remote.index_of, query, filtered))
        return index, bundle.passages if isinstance(bundle, LoadedTexts) else index.passages

    async def _rank(
        self, index: Index, query: Query, text: str, allowed: "Mask | None", lap: Lap, row: int | None
    ) -> Ranking:
        """Return the ranking of the rows of `allowed` in the query's mode.

        With `row`, the stored embedding of that row is the query's.
        Raises SearchError if the mode needs keywords and there are none.
        """
        bundle, weight = self._bundle, query.fusion_weight
        table = None if query.queries == BY_MODEL else bundle.table
        queries = None if bundle.table is None or row is not None else BY_MODEL if table is None else BY_TABLE

        async def embed() -> tuple[Embeddings, bool]:
            if row is not None:
                return await self._run(partial(index.embedding, row)), False
            (tokens,) = await self._executor.tokenize([text], role="query")
            # a table takes microseconds: its texts wait for no batch
            (embedding,) = await self._executor.embed([tokens]) if table is None else table.embed([tokens])
            lap("embed")
            return embedding, tokens.is_truncated

        if query.mode == "semantic":
            embedding, is_truncated = await embed()

            def find_similar(count: int, mask: "Mask | None") -> list[Hit]:
                return index.search(embedding, count, allowed if mask is None else mask, exact=query.exact)

            def best_similar(count: int) -> Scored:
                return Scored(*index.best(embedding, count, allowed, exact=query.exact, rough=True))

            return Ranking(find_similar, best_similar, lambda: allowed, is_truncated, queries=queries)
        keywords = bundle.keywords if isinstance(bundle, LoadedTexts) else None
        if keywords is None:
            raise SearchError(f"mode: found {query.mode!r}, but {NO_KEYWORDS}")
        info = keywords.info
        if weight is not None:
            if info.fusion != CONVEX:
                raise SearchError(f"fusion_weight: found {weight}, but {ONLY_RANKS}")
            info = replace(info, fusion_weight=weight)
        match = partial(keywords.match, text, allowed, prefix=query.prefix and row is None, correct=query.correct)
        matches = await self._run(match, is_long=self._is_large or len(text) > SHORT_QUERY)
        if query.mode == "keyword":
            return Ranking(
                matches.best,
                matches.scored,
                lambda: matches.scores > 0,
                matches.is_truncated,
                matches.corrected,
                matches.completed,
            )
        from semsearch.engine.hybrid import fuse  # only a hybrid search needs it

        lap("keyword")
        embedding, is_truncated = await embed()

        def find_both(count: int, mask: "Mask | None") -> list[Hit]:
            return fuse(index, embedding, matches, info, count, mask, exact=query.exact).hits()

        return Ranking(
            find_both,
            lambda count: fuse(index, embedding, matches, info, count, exact=query.exact, rough=True),
            lambda: matches.allowed,
            is_truncated or matches.is_truncated,
            matches.corrected,
            matches.completed,
            queries,
        )


def _boosted(ranking: Ranking, boost: dict[str, Any], bundle: LoadedTexts, mode: str) -> Ranking:
    """Return the ranking with boosts. Raises SearchError, which lists the columns."""
    from semsearch.engine.metadata.boosts import (  # only a query with a boost needs it
        MOST_BOOSTED,
        boosted,
        read_boosts,
    )
    from semsearch.engine.metadata.filters import FilterError

    columns: Columns = bundle.columns
    try:
        boosts = read_boosts(boost, columns.kinds)
    except FilterError as error:
        raise filter_error(error, columns.kinds) from None
    best = ranking.best(MOST_BOOSTED)
    return replace(ranking, find=boosted(ranking.find, best, boosts, columns, mode, time()))


def _filtered_rows(condition: dict[str, Any], bundle: LoadedTexts) -> "Mask":
    """Return the rows that a filter keeps, (rows,) bool. Raises SearchError, which lists the columns."""
    from semsearch.engine.metadata.filters import FilterError, allowed_rows  # only a query with a filter needs it

    columns: Columns = bundle.columns
    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        raise filter_error(error, columns.kinds) from None


def log_queries(search: Search, logger: Log) -> Search:
    """Return a search that logs each query with a text, its number of results and its best score."""

    async def logged(query: Query, lap: Lap) -> Found:
        found = await search(query, lap)
        if query.text is not None:
            best = max((result["score"] for result in found.results), default=None)
            logger.info("query", extra={"query": query.text, "results": len(found.results), "best_score": best})
        return found

    return logged
