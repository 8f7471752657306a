"""A search from a text to results, shared by /similar, MCP and the command line. It knows no HTTP."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.engine.loading import Loaded, LoadedModel
from function.engine.quantization import Embeddings
from function.executor import Executor

if TYPE_CHECKING:
    from function.engine.metadata.columns import Columns, Mask
    from function.engine.metadata.filters import FilterError

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
    """A query. docs/api.md explains each field; all values but that of `filter` have been checked."""

    text: str
    num_results: int = 5
    mode: str = "semantic"
    exact: bool = False
    filter: dict[str, Any] | None = None
    include: Sequence[str] = ("text", "metadata")


@dataclass(frozen=True, slots=True)
class Found:
    """The results as /similar returns them, best first, and whether the text was longer than the search reads."""

    results: list[dict[str, Any]]
    is_truncated: bool


Search = Callable[[Query, Lap], Awaitable[Found]]


def make_search(bundle: Loaded, executor: Executor) -> Search:
    """Return the search of a bundle; columns and keywords are opened by the first query that needs them.

    The search raises SearchError if the filter cannot be used, or if the mode needs keywords and there are none. It
    raises BackendError if the texts are in another service, and that service fails.
    """
    if isinstance(bundle, LoadedModel):
        return _make_search_in_s3_vectors(bundle, executor)
    index, passages = bundle.index, bundle.passages

    async def search(query: Query, lap: Lap) -> Found:
        allowed, is_large = None, len(index) > FEW_ROWS
        if query.filter is not None:
            condition = query.filter
            allowed = await executor.run(lambda: _filtered_rows(condition, bundle.columns), is_long=True)
            lap("filter")
        if query.mode == "semantic":
            embedding, is_truncated = await _embed(executor, query.text, lap)
            hits = await executor.run(
                lambda: index.search(embedding, query.num_results, allowed, exact=query.exact), is_long=is_large
            )
            lap("search")
        elif (keywords := bundle.keywords) is None:
            raise SearchError(f"mode: found {query.mode!r}, but {NO_KEYWORDS}")
        else:
            is_long = is_large or len(query.text) > SHORT_QUERY
            matches = await executor.run(lambda: keywords.match(query.text, allowed), is_long=is_long)
            is_truncated = matches.is_truncated
            if query.mode == "keyword":
                hits = await executor.run(lambda: matches.best(query.num_results), is_long=is_large)
                lap("keyword")
            else:
                from function.engine.hybrid import fuse  # only a hybrid search needs it

                lap("keyword")
                embedding, is_cut = await _embed(executor, query.text, lap)
                hits = await executor.run(
                    lambda: fuse(index, embedding, matches, keywords.info, query.num_results, exact=query.exact),
                    is_long=is_large,
                )
                is_truncated |= is_cut
                lap("search")
        results = []
        for hit in hits:
            result: dict[str, Any] = {"index": hit.row, "id": passages.id(hit.row), "score": hit.score}
            if hit.scores is not None:
                result["scores"] = hit.scores
            if "text" in query.include:
                result["text"] = passages.text(hit.row)
            if "metadata" in query.include:
                result["metadata"] = passages.metadata(hit.row)
            results.append(result)
        return Found(results, is_truncated)

    return search


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
        if query.exact:
            raise SearchError(f"exact: found True, expected False; {IN_S3_VECTORS}")
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
            hits = await executor.wait(lambda: client.query(embedding, query.num_results, condition))
        except VectorsError as error:
            raise BackendError(str(error), error.seconds) from error
        finally:
            lap("search")
        parts = {"index", "id", "score", *query.include}
        return Found([{name: value for name, value in hit.items() if name in parts} for hit in hits], is_truncated)

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
