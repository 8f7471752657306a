"""A query, and the errors of a search."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from semsearch.engine.errors import ExpectedError

if TYPE_CHECKING:
    from semsearch.engine.metadata.filters import FilterError
    from semsearch.search.results import Found

MOST_OFFSET = 10_000  # results that a query can skip
MOST_CANDIDATES = 100  # maximum texts that the reranker scores for a query
MOST_IN_GROUP = 20  # maximum texts of a group
MOST_AROUND = 10  # maximum passages before a passage, and after it, that a caller can request
CHARACTERS_PER_TEXT = 65_536  # takes 0.1 s to tokenize; a model reads only the first few thousand
FLOOR = "floor"  # a `min_score`: that which was measured for the mode when the index was made
LONGEST_FOUND = 60  # maximum characters of a wrong value that an error shows

Lap = Callable[[str], None]  # what `Stopwatch.lap` does: it ends a phase


class SearchError(ExpectedError, ValueError):
    """A search that this bundle cannot make: the message says which field, what was found and what was expected."""


class UnknownIdError(SearchError):
    """A search for texts like one that the corpus does not have."""


# Fields that do not make a query refined. Every search looks at them; only group_size and facets_of, the last two, have
# no effect without a field that does.
PLAIN_FIELDS = (
    *("text", "num_results", "mode", "exact", "filter", "include", "min_score", "fusion_weight", "prefix", "correct"),
    *("without", "queries", "boost", "rerank", "rerank_weight", "group_size", "facets_of"),
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query. docs/api.md explains each field. Callers check values, the search checks columns."""

    text: str | None = None
    num_results: int = 5
    mode: str | None = None  # None: the default mode of the bundle
    exact: bool = False
    filter: dict[str, Any] | None = None
    include: Sequence[str] = ("text", "metadata")
    id: str | None = None
    offset: int = 0
    min_score: float | str | None = None  # FLOOR, or a number
    group_by: str | None = None
    group_size: int = 3
    sort: Mapping[str, str] | None = None
    facets: tuple[str, ...] = ()
    facets_of: str = "matching"
    highlights: bool = False
    fusion_weight: float | None = None
    prefix: bool = False
    correct: bool = True
    without: Sequence[str] = ()
    queries: str | None = None  # BY_MODEL: the model embeds the text, even if the bundle has a query table
    boost: dict[str, Any] | None = None  # None: the default boost of the bundle; {}: none
    rerank: int | None = None  # number of candidates: the best texts, which the bundle's reranker scores again
    rerank_weight: float | None = None  # weight of the reranker's score; only `evaluate` sets it

    @property
    def is_plain(self) -> bool:
        """Return whether it needs no RefinedQuery: it has a text, and all but its plain fields have their defaults."""
        return self.text is not None and all(getattr(self, name) == value for name, value in REFINING.items())


def refining_fields(kind: type[Query]) -> dict[str, Any]:
    """Return the fields of a query that are not plain, and their defaults."""
    return {field.name: field.default for field in fields(kind) if field.name not in PLAIN_FIELDS}


REFINING = refining_fields(Query)


SearchFunction = Callable[[Query, Lap], Awaitable["Found"]]


def filter_error(error: "FilterError", kinds: Mapping[str, str], untyped: Sequence[str] = ()) -> SearchError:
    """Return the error of a filter over columns of these types; its message lists them.

    untyped are the columns whose values are of several types.
    """
    if error.found in untyped:
        return SearchError(
            f"{error.where}: the values of {error.found!r} are of several types, so it cannot be compared; index the "
            f"texts again with --column {error.found}=string, or with values of one type"
        )
    known = ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) or "none"
    found = reprlib.repr(error.found)
    shown = found if len(found) <= LONGEST_FOUND else found[:LONGEST_FOUND] + "…"
    return SearchError(f"{error.where}: expected {error.expected}, found {shown}; the columns are: {known}")
