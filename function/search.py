"""A search from a text to results, shared by /similar, MCP and the command line. It knows no HTTP."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.engine.loading import Loaded, LoadedBundle, LoadedModel
from function.engine.passages import Passages
from function.engine.quantization import Embeddings
from function.engine.semantic.index import MOST_HITS, Hit
from function.executor import Executor

if TYPE_CHECKING:
    from function.engine.metadata.columns import Columns, Mask
    from function.engine.metadata.filters import FilterError
    from function.engine.ranking import Find

IN_S3_VECTORS = (
    "the texts are in S3 Vectors, which knows only embeddings and looks only where the best texts probably are"
)
NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"
FEW_ROWS = 100_000  # number of rows that are searched in about a millisecond
SHORT_QUERY = 200  # characters of a text whose words are looked up in about a millisecond
LONGEST_FOUND = 60  # maximum characters of a wrong value in a filter that an error shows

Lap = Callable[[str], None]  # what `Stopwatch.lap` does: it ends a phase


class SearchError(ValueError):
    """A search that this bundle cannot make: the message says which field, what was found and what was expected."""


class BackendError(RuntimeError):
    """The service that holds the texts failed; the message has its own error.

    `seconds` is how long to wait before the next request if the service limits their rate, None for other errors.
    """

    def __init__(self, message: str, seconds: int | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Query:
    """A query. docs/api.md explains each field; all values but those of columns have been checked."""

    text: str | None = None
    num_results: int = 5
    mode: str = "semantic"
    exact: bool = False
    filter: dict[str, Any] | None = None
    include: Sequence[str] = ("text", "metadata")
    id: str | None = None
    offset: int = 0
    min_score: float | None = None
    group_by: str | None = None
    group_size: int = 3
    sort: Mapping[str, str] | None = None
    facets: Sequence[str] = ()
    highlights: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether the best hits for a text are all that is asked for."""
        return not (
            self.id is not None
            or self.offset
            or self.min_score is not None
            or self.group_by is not None
            or self.sort is not None
            or self.facets
            or self.highlights
            or self.text is None
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The results as /similar returns them, best first, and whether the text was longer than the search reads.

    With facets, `facets` has the values of each column with their counts, and `total` is the number of texts counted.
    """

    results: list[dict[str, Any]]
    is_truncated: bool = False
    facets: dict[str, list[dict[str, Any]]] | None = None
    total: int | None = None

    def reply(self) -> dict[str, Any]:
        """Return the reply of /similar."""
        content: dict[str, Any] = {"results": self.results, "truncated": self.is_truncated}
        if self.facets is not None:
            content["facets"] = self.facets
        if self.total is not None:
            content["total"] = self.total
        return content


Search = Callable[[Query, Lap], Awaitable[Found]]


def make_search(bundle: Loaded, executor: Executor) -> Search:
    """Return the search of a bundle; columns and keywords are opened by the first query that needs them.

    The search raises SearchError if a field names a column that cannot be used, or if the mode needs keywords and there
    are none. It raises BackendError if the texts are in another service, and that service fails.
    """
    if isinstance(bundle, LoadedModel):
        return _make_search_in_s3_vectors(bundle, executor)
    index, passages = bundle.index, bundle.passages
    is_large = len(index) > FEW_ROWS

    async def search(query: Query, lap: Lap) -> Found:
        allowed = None
        if query.filter is not None:
            condition = query.filter
            allowed = await executor.run(lambda: _filtered_rows(condition, bundle.columns), is_long=True)
            lap("filter")
        if query.is_plain:
            assert query.text is not None
            ranking = await _rank(bundle, executor, query, query.text, allowed, lap)
            hits = await executor.run(lambda: ranking.find(query.num_results, None), is_long=is_large)
            lap("keyword" if query.mode == "keyword" else "search")
            return Found([show_hit(passages, hit, query.include) for hit in hits], ranking.is_truncated)
        from function.refinements import RefinedQuery  # most queries do not need it

        refined = await executor.run(lambda: RefinedQuery(bundle, query, allowed), is_long=True)
        if refined.text is None:
            found = await executor.run(refined.list_texts, is_long=True)
        else:
            ranking = await _rank(bundle, executor, query, refined.text, refined.allowed, lap, refined.row)
            found = await executor.run(lambda: refined.search(ranking), is_long=True)
        lap("search")
        return found

    return search


def show_hit(passages: Passages, hit: Hit, include: Sequence[str]) -> dict[str, Any]:
    """Return a hit as a reply shows it."""
    result: dict[str, Any] = {"index": hit.row, "id": passages.id(hit.row), "score": hit.score}
    if hit.scores is not None:
        result["scores"] = hit.scores
    if "text" in include:
        result["text"] = passages.text(hit.row)
    if "metadata" in include:
        result["metadata"] = passages.metadata(hit.row)
    return result


@dataclass(frozen=True, slots=True)
class Ranking:
    """All texts in the order of a query's mode: a function that finds the first, and which texts it can find.

    `matching` returns (rows,) bool, or None if every text can be found.
    """

    find: "Find"
    matching: "Callable[[], Mask | None]"
    is_truncated: bool


async def _rank(
    bundle: LoadedBundle,
    executor: Executor,
    query: Query,
    text: str,
    allowed: "Mask | None",
    lap: Lap,
    row: int | None = None,
) -> Ranking:
    """Return the ranking of the rows of `allowed` in the query's mode.

    With a row of the corpus, its stored embedding takes the place of the text's.
    Raises SearchError if the mode needs keywords and there are none.
    """
    index, mode = bundle.index, query.mode
    if mode == "semantic":
        embedding, is_truncated = await _embed(executor, text, lap) if row is None else (index.embedding(row), False)

        def find_similar(count: int, mask: "Mask | None") -> list[Hit]:
            return index.search(embedding, count, allowed if mask is None else mask, exact=query.exact)

        return Ranking(find_similar, lambda: allowed, is_truncated)
    if (keywords := bundle.keywords) is None:
        raise SearchError(f"mode: found {mode!r}, but {NO_KEYWORDS}")
    is_long = len(index) > FEW_ROWS or len(text) > SHORT_QUERY
    matches = await executor.run(lambda: keywords.match(text, allowed), is_long=is_long)
    if mode == "keyword":
        return Ranking(matches.best, lambda: matches.scores > 0, matches.is_truncated)
    from function.engine.hybrid import fuse  # only a hybrid search needs it

    lap("keyword")
    embedding, is_truncated = await _embed(executor, text, lap) if row is None else (index.embedding(row), False)

    def find_both(count: int, mask: "Mask | None") -> list[Hit]:
        return fuse(index, embedding, matches, keywords.info, count, mask, exact=query.exact)

    return Ranking(find_both, lambda: matches.allowed, is_truncated | matches.is_truncated)


async def _embed(executor: Executor, text: str, lap: Lap) -> tuple[Embeddings, bool]:
    """Return the embedding (dim,) of a query, and whether the text was longer than the model reads."""
    (tokens,) = await executor.tokenize([text], role="query")
    (embedding,) = await executor.embed([tokens])
    lap("embed")
    return embedding, tokens.is_truncated


def _make_search_in_s3_vectors(bundle: LoadedModel, executor: Executor) -> Search:
    """Return the search of the index in Amazon S3 Vectors that the manifest names."""
    from function.engine.metadata.filters import FilterError  # only a bundle without texts of its own needs these
    from function.engine.metadata.vector_filters import translate
    from function.s3vectors.client import VectorsClient, VectorsError

    assert bundle.manifest.index is not None
    assert bundle.manifest.index.vectors is not None
    kinds, client = bundle.manifest.index.columns, VectorsClient(bundle.manifest.index.vectors)

    async def search(query: Query, lap: Lap) -> Found:
        if query.mode != "semantic":
            raise SearchError(f"mode: found {query.mode!r}, expected 'semantic'; {IN_S3_VECTORS}")
        for field in ("exact", "id", "sort", "facets"):
            if value := getattr(query, field):
                raise SearchError(f"{field}: found {value!r}, expected none; {IN_S3_VECTORS}")
        if query.text is None:
            raise SearchError(f"text: missing; {IN_S3_VECTORS}")
        if query.offset + query.num_results > MOST_HITS:
            raise SearchError(f"offset: expected at most {MOST_HITS} together with num_results; {IN_S3_VECTORS}")
        condition = None
        if query.filter is not None:
            given = query.filter
            try:
                condition = await executor.run(lambda: translate(given, kinds), is_long=True)
            except FilterError as error:
                raise _filter_error(error, kinds) from None
            lap("filter")
        embedding, is_truncated = await _embed(executor, query.text, lap)
        try:
            count = query.num_results if query.is_plain else MOST_HITS
            hits = await executor.wait(lambda: client.query(embedding, count, condition))
        except VectorsError as error:
            raise BackendError(str(error), error.seconds) from error
        finally:
            lap("search")
        if not query.is_plain:
            from function.refinements import refine_hits  # most queries do not need it

            hits = await executor.run(lambda: refine_hits(bundle, hits, query), is_long=True)
        left_out = {"text", "metadata"}.difference(query.include)
        for hit in hits:
            for name in left_out:
                del hit[name]
        return Found(hits, is_truncated)

    return search


def _filtered_rows(condition: dict[str, Any], columns: "Columns") -> "Mask":
    """Return the rows that a filter keeps, (rows,) bool. Raises SearchError, which lists the columns."""
    from function.engine.metadata.filters import FilterError, allowed_rows  # only a query with a filter needs it

    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        raise _filter_error(error, columns.kinds) from None


def _filter_error(error: "FilterError", kinds: Mapping[str, str]) -> SearchError:
    known = ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) or "none"
    found = reprlib.repr(error.found)
    shown = found if len(found) <= LONGEST_FOUND else found[:LONGEST_FOUND] + "…"
    return SearchError(f"{error.where}: expected {error.expected}, found {shown}; the columns are: {known}")
