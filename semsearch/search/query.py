"""A query, and the errors of a search."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from semsearch.engine.errors import ExpectedError

if TYPE_CHECKING:
    from semsearch.engine.metadata.filters import FilterError
    from semsearch.search.results import Found

MOST_OFFSET = 10_000  # results that a query can skip
MOST_COLUMNS = 10  # maximum columns of `sort` and of `facets`
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


# Metadata of fields. A query is refined if a field that refines it differs from its default. A search of texts in S3
# Vectors refuses the fields that need the texts in the bundle.
REFINES = {"refines": True}
NEEDS_TEXTS = {"needs_texts": True}


@dataclass(frozen=True, slots=True)
class Query:
    """A query. docs/api.md explains each field. Who makes it has checked the values, and the search checks the names
    of columns."""

    text: str | None = None
    num_results: int = 5
    mode: str | None = None  # None: the default mode of the bundle
    exact: bool = False
    filter: dict[str, Any] | None = None
    include: Sequence[str] = ("text", "metadata")
    id: str | None = field(default=None, metadata=REFINES | NEEDS_TEXTS)
    vector: Sequence[float] | None = None  # the query's embedding, of any length but 0; the model embeds nothing then
    offset: int = field(default=0, metadata=REFINES)
    min_score: float | str | None = None  # FLOOR, or a number
    group_by: str | None = field(default=None, metadata=REFINES)
    group_size: int = 3
    sort: Mapping[str, str] | None = field(default=None, metadata=REFINES | NEEDS_TEXTS)
    facets: tuple[str, ...] = field(default=(), metadata=REFINES | NEEDS_TEXTS)
    facets_of: str = "matching"
    highlights: bool = field(default=False, metadata=REFINES)
    fusion_weight: float | None = None
    prefix: bool = False
    correct: bool = True
    without: Sequence[str] = field(default=(), metadata=NEEDS_TEXTS)
    queries: str | None = None  # BY_MODEL: the model embeds the text, even if the bundle has a query table
    # None: the default boost of the bundle; {}: none
    boost: dict[str, Any] | None = field(default=None, metadata=NEEDS_TEXTS)
    # number of candidates: the best texts, which the bundle's reranker scores again
    rerank: int | None = field(default=None, metadata=NEEDS_TEXTS)
    rerank_weight: float | None = None  # weight of the reranker's score; only `evaluate` sets it
    # whether a passage that several documents have is one result, unless the query has groups or is sorted; MCP alone
    # sets it
    folds_copies: bool = field(default=False, metadata=REFINES | NEEDS_TEXTS)

    @property
    def is_plain(self) -> bool:
        """Return whether it needs no RefinedQuery: it has a text, and the fields that refine it have their defaults."""
        return self.text is not None and all(getattr(self, name) == value for name, value in REFINING.items())


REFINING = {each.name: each.default for each in fields(Query) if "refines" in each.metadata}  # with their defaults
SEQUENCES = tuple(each.name for each in fields(Query) if isinstance(each.default, tuple))
NEED_TEXTS = tuple(each.name for each in fields(Query) if "needs_texts" in each.metadata)


def query_with(values: dict[str, Any]) -> Query:
    """Return the query whose fields have these values. Lists become tuples where the defaults are tuples."""
    return Query(**values | {name: tuple(values[name]) for name in SEQUENCES if name in values})


def query_of(request: object) -> Query:
    """Return a request, which has the fields of SimilarRequest, as the search takes it: they have the same names."""
    fields = vars(request)
    rerank = None if fields["rerank"] is None else fields["rerank"].candidates
    return query_with(fields | {"rerank": rerank})


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
