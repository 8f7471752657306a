"""A search from words to results, for every door: /similar, MCP and the command line. It knows no HTTP."""

import reprlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from function.engine.loading import LoadedBundle
from function.engine.quantization import Embeddings
from function.execution import Execution

if TYPE_CHECKING:
    from function.engine.columns import Columns, Mask

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"
LONGEST_FOUND = 60  # characters of a wrong value in a filter that are shown

Lap = Callable[[str], None]  # what `Stopwatch.lap` does: it ends a phase


class SearchError(ValueError):
    """A search that this bundle cannot make: the message says which field, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for. docs/api.md explains each field; the values are valid, but for `filter`."""

    text: str
    num_results: int = 5
    mode: str = "semantic"
    exact: bool = False
    filter: dict[str, Any] | None = None
    include: Sequence[str] = ("text", "metadata")


@dataclass(frozen=True, slots=True)
class Found:
    """Results, best first, each as /similar returns it, and whether the text was longer than the search reads."""

    results: list[dict[str, Any]]
    is_truncated: bool


Search = Callable[[Query, Lap], Awaitable[Found]]


def make_search(bundle: LoadedBundle, execution: Execution) -> Search:
    """Return what searches a bundle; columns and keywords are opened by the first query that needs them.

    The search raises SearchError if the filter cannot be used, or if the mode needs keywords and there are none.
    """
    index, passages = bundle.index, bundle.passages
    columns, keywords_once = cache(bundle.open_columns), cache(bundle.open_keywords)

    async def embed(text: str, lap: Lap) -> tuple[Embeddings, bool]:
        """Return the embedding (dim,) of a query, and whether the text was longer than the model reads."""
        (tokens,) = await execution.tokenize([text], role="query")
        (embedding,) = await execution.embed([tokens])
        lap("embed")
        return embedding, tokens.is_truncated

    async def search(query: Query, lap: Lap) -> Found:
        allowed = None
        if query.filter is not None:
            condition = query.filter
            allowed = await execution.run(lambda: _filtered_rows(condition, columns()), is_long=True)
            lap("filter")
        if query.mode == "semantic":
            embedding, is_truncated = await embed(query.text, lap)
            hits = await execution.run(lambda: index.search(embedding, query.num_results, allowed, exact=query.exact))
            lap("search")
        elif (keywords := keywords_once()) is None:
            raise SearchError(f"mode: found {query.mode!r}, but {NO_KEYWORDS}")
        else:
            matches = await execution.run(lambda: keywords.match(query.text, allowed))
            is_truncated = matches.is_truncated
            lap("keyword")
            if query.mode == "keyword":
                hits = matches.best(query.num_results)
                lap("keyword")
            else:
                from function.engine.hybrid import fuse  # only a hybrid search needs it

                embedding, is_cut = await embed(query.text, lap)
                hits = await execution.run(
                    lambda: fuse(index, embedding, matches, keywords.info, query.num_results, exact=query.exact)
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


def _filtered_rows(condition: dict[str, Any], columns: "Columns") -> "Mask":
    """Return the rows that a filter keeps, (rows,) bool. Raises SearchError, which lists the columns."""
    from function.engine.filters import FilterError, allowed_rows  # only a query with a filter needs it

    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        known = ", ".join(f"{name} ({kind})" for name, kind in columns.kinds.items()) or "none"
        found = reprlib.repr(error.found)
        shown = found if len(found) <= LONGEST_FOUND else found[:LONGEST_FOUND] + "…"
        message = f"{error.where}: expected {error.expected}, found {shown}"
        raise SearchError(f"{message}; the columns are: {known}") from None
