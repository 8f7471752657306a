"""From a query to results in three steps: prepare (columns, rows, words), embed the text, and answer.

Columns, keywords and reranker are opened by the first query that needs them. Where the texts are in S3 Vectors,
semsearch/search/s3vectors.py searches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from semsearch.engine.bundle import BY_MODEL, BY_TABLE, CorpusInfo, KeywordsInfo, ModelInfo, QueryEmbedder
from semsearch.engine.hits import Mask
from semsearch.engine.loading import AnyBundle, LoadedBundle
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Index
from semsearch.search.executor import Executor
from semsearch.search.query import FLOOR, LONGEST_FOUND, Lap, Query, SearchError, filter_error
from semsearch.search.ranking import (
    HybridRanking,
    KeywordRanking,
    Ranking,
    RankingAbove,
    ReorderedRanking,
    SemanticRanking,
)
from semsearch.search.results import Found, show_hit

if TYPE_CHECKING:
    from semsearch.engine.keyword.matches import Matches
    from semsearch.engine.metadata.boosts import Boost
    from semsearch.engine.metadata.columns import Columns
    from semsearch.search.refinements import RefinedQuery

Returned = TypeVar("Returned")

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or index the texts again with --keywords"
NO_RERANKER = "this bundle has no reranker; leave it out, or index the texts again with --rerank MODEL"
NO_RERANKER_EVER = "an index without a model has no reranker; leave it out"
NO_FLOOR = "this index has no measured floor; use a number, or index the texts again"
NO_FLOOR_WITHOUT_MODEL = "an index without a model has no measured floor; use a number"
LONG_QUERY = 200  # characters of texts, from which finding their words takes more than about a millisecond


@dataclass(slots=True)
class Prepared:
    """A query over a bundle, ready to be answered once its text is embedded."""

    query: Query  # with a mode
    allowed: Mask | None  # (rows,) bool: the rows that can be found, None for all
    refined: "RefinedQuery | None"  # None for a plain query
    text: str | None  # what to search for; None if texts are only listed
    row: int | None  # the row whose embedding is the query's
    matches: "Matches | None" = None  # None in the mode semantic
    info: KeywordsInfo | None = None  # how keywords and embeddings are combined; None in the mode semantic


class Embedded(NamedTuple):
    """The embedding of a query's text, (dim,) float32; None in the mode keyword, which needs none."""

    embedding: Embeddings | None
    is_truncated: bool = False
    by: QueryEmbedder | None = None  # if the bundle has a query table


class BundleSearch:
    """An open bundle, and the executor of its searches."""

    def __init__(self, bundle: LoadedBundle, executor: Executor) -> None:
        """Take a bundle, whose parts the queries open."""
        self._bundle, self._executor = bundle, executor

    async def search(self, query: Query, lap: Lap) -> Found:
        """Return what a query finds, calling `lap` at the end of each phase.

        Raises SearchError if a field has a value that cannot be used with this bundle, also where the field has no
        effect: a column that is not there, or a mode that needs keywords if there are none.
        """
        query = self._with_mode(query)
        prepared = await self._run(partial(self.prepare, query, lap), self._rows_to_prepare(query))
        if prepared.text is None and query.vector is None:
            return await self._run(partial(self.list_texts, prepared, lap), None)
        rows = self._rows_to_answer(query)
        embedded = await self._embed(prepared, lap)
        if query.rerank is None:
            return await self._run(partial(self.answer, prepared, embedded, lap), rows)
        ranking = await self._run(partial(self.rank, prepared, embedded), rows)
        ranking = await self._rerank(prepared, ranking, lap)
        return await self._run(partial(self.show, prepared, embedded, ranking, lap), rows)

    async def _run(self, work: Callable[[], Returned], rows: int | None) -> Returned:
        """Return what a step returns; rows is the number of rows that it reads, None for an unknown number."""
        return await self._executor.run(work, rows=rows)

    def _with_mode(self, query: Query) -> Query:
        keywords = self._bundle.manifest.corpus.keywords
        if query.mode in ("keyword", "hybrid") and keywords is None:
            raise SearchError(f"mode: found {query.mode!r}, but {NO_KEYWORDS}")
        if query.rerank is not None and self._bundle.manifest.rerank is None:
            reason = NO_RERANKER if self._bundle.embedder is not None else NO_RERANKER_EVER
            raise SearchError(f"rerank: found {query.rerank} candidates, but {reason}")
        if query.vector is not None:
            from semsearch.search.vector import check_fields  # most queries have none

            check_fields(query)
        has_model = self._bundle.embedder is not None
        if not has_model:
            check_without_model(query, keywords is not None, self._bundle.manifest.model)
        if query.mode is None:
            mode = "semantic"
            # with an id the query is a stored text, which shares words with nearly every other
            if keywords is not None and query.id is None and (query.text is not None or query.vector is None):
                mode = "hybrid" if has_model or query.vector is not None else "keyword"
            query = replace(query, mode=mode)
        if query.without and (query.mode == "semantic" or (query.text is None and query.id is None)):
            found = f"{[*query.without]!r:.{LONGEST_FOUND}}"
            raise SearchError(f"without: found {found}, expected it with a text, in the modes keyword and hybrid")
        if query.min_score == FLOOR:
            floor_of(query, str(query.mode), self._bundle.manifest.corpus)
        return query

    def _rows_to_prepare(self, query: Query) -> int | None:
        """Return the number of rows if preparing takes about as long as a look at each, None if it can take longer."""
        characters = len(query.text or "") + sum(map(len, query.without))
        is_long = query.filter is not None or not query.is_plain or characters > LONG_QUERY
        if is_long:
            return None
        return self._bundle.manifest.corpus.rows

    def _rows_to_answer(self, query: Query) -> int | None:
        """Return the number of rows if answering takes about as long as a look at each, None if it can take longer."""
        is_long = not query.is_plain or self._boost(query)
        if is_long:
            return None
        return self._bundle.manifest.corpus.rows

    def prepare(self, query: Query, lap: Lap) -> Prepared:
        """Return the query with the rows that can be found, its refinements, and the rows that have its words."""
        bundle = self._bundle
        allowed = bundle.allowed
        if query.filter is not None:
            allowed = bundle.among_allowed(filtered_rows(query.filter, bundle))
            lap("filter")
        text, row, refined = query.text, None, None
        if not query.is_plain:
            from semsearch.search.refinements import RefinedQuery  # most queries do not need it

            refined = RefinedQuery(bundle, query, allowed)
            text, row, allowed = refined.text, refined.row, refined.allowed
        prepared = Prepared(query, allowed, refined, text, row)
        if query.mode != "semantic" and text is not None:
            self._find_words(prepared, text)
            if query.mode == "hybrid":
                lap("keyword")
        return prepared

    def _find_words(self, prepared: Prepared, text: str) -> None:
        query = prepared.query
        keywords = self._bundle.keywords
        assert keywords is not None  # `_with_mode` has checked it
        prepared.info = keywords.info
        if query.fusion_weight is not None:
            prepared.info = replace(keywords.info, fusion_weight=query.fusion_weight)
        is_prefix = query.prefix and prepared.row is None
        prepared.matches = keywords.match(
            text, prepared.allowed, prefix=is_prefix, correct=query.correct, without=query.without
        )

    async def _embed(self, prepared: Prepared, lap: Lap) -> Embedded:
        """Return the embedding of the text, the query's own, or the stored one of its row."""
        if prepared.query.mode == "keyword":
            return Embedded(None)
        if prepared.query.vector is not None:
            from semsearch.search.vector import normalized

            return Embedded(normalized(prepared.query.vector, self._bundle.manifest.model.dim))
        if prepared.row is not None:
            embedding = await self._run(partial(self._bundle.index.embedding, prepared.row), 1)
            return Embedded(embedding)
        assert prepared.text is not None  # otherwise texts are listed
        embedded = await embed_text(prepared.text, prepared.query, self._bundle, self._executor)
        lap("embed")
        return embedded

    def list_texts(self, prepared: Prepared, lap: Lap) -> Found:
        """Return the texts that pass the filter, for a query without a text."""
        assert prepared.refined is not None  # such a query is not plain
        boosts = self._boosts(prepared.query)
        found = prepared.refined.list_texts(boosts)
        lap("search")
        return found

    def answer(self, prepared: Prepared, embedded: Embedded, lap: Lap) -> Found:
        """Return what a prepared query finds."""
        return self.show(prepared, embedded, self.rank(prepared, embedded), lap)

    def rank(self, prepared: Prepared, embedded: Embedded) -> Ranking:
        """Return the ranking of the query's mode, with its boosts and its least score.

        The floor was measured without boosts, so it is compared with the scores before them.
        """
        query = prepared.query
        ranking = rank_by_mode(prepared, embedded, self._bundle.index)
        if query.min_score == FLOOR:
            ranking = RankingAbove(ranking, floor_of(query, str(query.mode), self._bundle.manifest.corpus))
        boosts = self._boosts(query)
        if boosts:
            ranking = boosted_ranking(ranking, boosts, self._bundle.columns, str(query.mode))
        if isinstance(query.min_score, int | float):
            ranking = RankingAbove(ranking, query.min_score)
        return ranking

    def _boost(self, query: Query) -> dict[str, Any]:
        if query.boost is None:
            return self._bundle.manifest.corpus.boost
        return query.boost

    def _boosts(self, query: Query) -> "Sequence[Boost]":
        """Return the boosts of a query. Raises SearchError, which lists the columns."""
        boost = self._boost(query)
        if not boost:
            return ()
        from semsearch.engine.metadata.boosts import read_boosts  # only a query with a boost needs it
        from semsearch.engine.metadata.filters import FilterError

        try:
            return read_boosts(boost, self._bundle.columns.kinds)
        except FilterError as error:
            raise filter_error(error, self._bundle.columns.kinds, self._bundle.manifest.corpus.untyped) from None

    async def _rerank(self, prepared: Prepared, ranking: Ranking, lap: Lap) -> Ranking:
        """Return a ranking whose first hits are the candidates, ordered by both scores."""
        from semsearch.engine.rerank.reranker import blended  # imported by the first query with rerank

        query, bundle, text = prepared.query, self._bundle, prepared.text
        assert query.rerank is not None
        assert text is not None
        candidates = await self._run(partial(ranking.find, query.rerank, None), None)
        lap("search")
        if not candidates:
            return ranking
        reranker = await self._run(lambda: bundle.reranker, None)
        assert reranker is not None  # `_with_mode` has checked it
        texts = [bundle.passages.text(hit.row) for hit in candidates]
        pairs = await self._run(partial(reranker.tokenize_pairs, text, texts), None)
        logits = await self._executor.score(reranker, pairs)
        lap("rerank")
        weight = reranker.info.weight if query.rerank_weight is None else query.rerank_weight
        find = blended(ranking.find, candidates, logits, weight, str(query.mode))
        # only a sort reads its rows, and `RefinedQuery` refuses that with rerank
        return ReorderedRanking(ranking, find, ranking.best)

    def show(self, prepared: Prepared, embedded: Embedded, ranking: Ranking, lap: Lap) -> Found:
        """Return the hits of a ranking as the query wants them."""
        query = prepared.query
        if prepared.refined is not None:
            found = replace(prepared.refined.search(ranking), queries=embedded.by)
            lap("search")
            return found
        hits = ranking.find(query.num_results, None)
        lap("keyword" if query.mode == "keyword" and query.rerank is None else "search")
        results = [show_hit(self._bundle.passages, hit, query.include) for hit in hits]
        return Found(results, ranking.is_truncated, corrected=ranking.corrected, queries=embedded.by)


async def embed_text(text: str, query: Query, bundle: AnyBundle, executor: Executor) -> Embedded:
    """Return the embedding of a query's text, by the query table if the bundle has one and the query allows it."""
    (tokens,) = await executor.tokenize([text], role="query")
    table = bundle.table
    if table is None or query.queries == BY_MODEL:
        (embedding,) = await executor.embed([tokens])
        by: QueryEmbedder | None = None if table is None else BY_MODEL
    else:
        (embedding,) = table.embed([tokens])  # takes microseconds: its texts wait for no batch
        by = BY_TABLE
    return Embedded(embedding, tokens.is_truncated, by)


def check_without_model(query: Query, has_keywords: bool, model: ModelInfo) -> None:
    """Raise SearchError for a query that needs the model, over a bundle that has none; model is the one elsewhere."""
    if query.queries is not None:
        raise SearchError(f"queries: found {query.queries!r}, but this bundle has no model; leave it out")
    if query.text is None or query.vector is not None or query.mode == "keyword":
        return
    advice = f"send its embedding by {model.name} as the vector"
    if query.mode is not None:
        found = f"found {query.mode!r} with a text and no vector"
        raise SearchError(f"mode: {found}, but this bundle has no model to embed the text; {advice}")
    if not has_keywords:
        raise SearchError(f"text: found without a vector, but this bundle has neither a model nor keywords; {advice}")


def floor_of(query: Query, mode: str, corpus: CorpusInfo) -> float:
    """Return the floor of a mode. Raises SearchError if the index has none for this query."""
    if query.fusion_weight is not None:
        found = f"{FLOOR!r} with fusion_weight, which changes the scores"
        raise SearchError(f"min_score: found {found}, expected a number; leave one of them out")
    measured = corpus.floor.get(mode)
    if measured is None:
        reason = NO_FLOOR if corpus.model_sha256 else NO_FLOOR_WITHOUT_MODEL
        raise SearchError(f"min_score: found {FLOOR!r}, but {reason}")
    if measured.score is None:
        raise SearchError(
            f"min_score: found {FLOOR!r}, but in the mode {mode} no score of this index says that nothing "
            "relevant was found; use another mode or a number"
        )
    return measured.score


def rank_by_mode(prepared: Prepared, embedded: Embedded, index: Index) -> Ranking:
    """Return the ranking of the query's mode."""
    query, matches, embedding = prepared.query, prepared.matches, embedded.embedding
    if matches is None:
        assert embedding is not None
        return SemanticRanking(index, embedding, prepared.allowed, query.exact, embedded.is_truncated)
    if embedding is None:
        return KeywordRanking(matches)
    assert prepared.info is not None  # it comes with the matches
    return HybridRanking(matches, index, embedding, prepared.info, query.exact, embedded.is_truncated)


def boosted_ranking(ranking: Ranking, boosts: "Sequence[Boost]", columns: "Columns", mode: str) -> Ranking:
    """Return the ranking with boosts."""
    from semsearch.engine.metadata.boosts import boosted  # only a query with a boost needs it

    return ReorderedRanking(ranking, *boosted(ranking.find, ranking.best, boosts, columns, mode, time()))


def filtered_rows(condition: dict[str, Any], bundle: LoadedBundle) -> Mask:
    """Return the rows that a filter keeps, (rows,) bool. Raises SearchError, which lists the columns."""
    from semsearch.engine.metadata.filters import FilterError, allowed_rows  # only a query with a filter needs it

    columns = bundle.columns
    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        raise filter_error(error, columns.kinds, bundle.manifest.corpus.untyped) from None
