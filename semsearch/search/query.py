"""A query, what it finds, and its errors."""

import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from semsearch.engine.passages import Passage, Passages
from semsearch.engine.semantic.index import Hit, Scored

if TYPE_CHECKING:
    from semsearch.engine.keyword.corrections import Correction
    from semsearch.engine.metadata.columns import Mask
    from semsearch.engine.metadata.filters import FilterError
    from semsearch.engine.ranking import Find

MOST_OFFSET = 10_000  # results that a query can skip
MOST_CANDIDATES = 100  # maximum texts that the reranker scores for a query
MOST_IN_GROUP = 20  # maximum texts of a group
LONGEST_FOUND = 60  # maximum characters of a wrong value that an error shows

Lap = Callable[[str], None]  # what `Stopwatch.lap` does: it ends a phase


class SearchError(ValueError):
    """A search that this bundle cannot make: the message says which field, what was found and what was expected."""


class UnknownIdError(SearchError):
    """A search for texts like one that the corpus does not have."""


class BackendError(RuntimeError):
    """The service that holds the texts failed; the message has its own error.

    `seconds` is how long to wait before the next request if the service limits their rate, None for other errors.
    """

    def __init__(self, message: str, seconds: int | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


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
    min_score: float | None = None
    group_by: str | None = None
    group_size: int = 3
    sort: Mapping[str, str] | None = None
    facets: Sequence[str] = ()
    facets_of: str = "matching"
    highlights: bool = False
    fusion_weight: float | None = None
    prefix: bool = False
    correct: bool = True
    queries: str | None = None  # BY_MODEL: the model embeds the text, even if the bundle has a query table
    boost: dict[str, Any] | None = None  # None: the default boost of the bundle; {}: none
    rerank: int | None = None  # number of candidates: the best texts, which the bundle's reranker scores again
    rerank_weight: float | None = None  # weight of the reranker's score; only `evaluate` sets it

    @property
    def is_plain(self) -> bool:
        """Return whether the query needs no RefinedQuery."""
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
    `corrected` has the words that replace each misspelled word of the text. `queries` is what embedded the text of a
    bundle with a query table: BY_TABLE or BY_MODEL.
    """

    results: list[dict[str, Any]]
    is_truncated: bool = False
    facets: dict[str, list[dict[str, Any]]] | None = None
    total: int | None = None
    corrected: "Mapping[str, Correction] | None" = None
    queries: str | None = None

    def reply(self) -> dict[str, Any]:
        """Return the reply of /similar."""
        content: dict[str, Any] = {"results": self.results, "truncated": self.is_truncated}
        if self.facets is not None:
            content["facets"] = self.facets
        if self.total is not None:
            content["total"] = self.total
        if self.corrected:
            content["corrected"] = {word: list(words) for word, words in self.corrected.items()}
        if self.queries is not None:
            content["queries"] = self.queries
        return content


Search = Callable[[Query, Lap], Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking of the texts for a query, which is not computed yet: `find` returns its first hits among some rows.

    `best` returns its first rows too, and misses more of the last ones. `matching` returns (rows,) bool, or None if
    every text can be found. `corrected` is that of `Found`, and `completed` has the terms that complete the last word
    of the query, and synonyms of its words. `queries` is that of `Found`.
    """

    find: "Find"
    best: Callable[[int], Scored]
    matching: "Callable[[], Mask | None]"
    is_truncated: bool
    corrected: "Mapping[str, Correction] | None" = None
    completed: frozenset[str] = frozenset()
    queries: str | None = None

    def at_least(self, least: float) -> "Ranking":
        """Return the ranking without the hits of a lower score."""
        return replace(self, find=lambda count, mask: [hit for hit in self.find(count, mask) if hit.score >= least])


def show_hit(passages: Passages | Mapping[int, Passage], hit: Hit, include: Sequence[str]) -> dict[str, Any]:
    """Return a hit as a reply shows it."""
    passage = passages[hit.row]
    result: dict[str, Any] = {"index": hit.row, "id": passage.id, "score": hit.score}
    if hit.scores is not None:
        result["scores"] = hit.scores
    if "text" in include:
        result["text"] = passage.text
    if "metadata" in include:
        result["metadata"] = passage.metadata
    return result


def filter_error(error: "FilterError", kinds: Mapping[str, str]) -> SearchError:
    """Return the error of a filter over columns of these types; its message lists them."""
    known = ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) or "none"
    found = reprlib.repr(error.found)
    shown = found if len(found) <= LONGEST_FOUND else found[:LONGEST_FOUND] + "…"
    return SearchError(f"{error.where}: expected {error.expected}, found {shown}; the columns are: {known}")
