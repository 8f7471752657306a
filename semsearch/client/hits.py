"""What `Search` returns: hits, and their tables for pandas, polars, Arrow and notebooks."""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, Self, SupportsIndex, overload

from semsearch.client.frames import ColumnTypes, FrameColumn, Framed, frame_columns, free_names

TABLE_COLUMNS = ("id", "score", "text", "index")  # columns that each table has, also without hits
REQUESTED_COLUMNS = ("group", "snippet", "source")  # columns of tables whose search requested them
LONGEST_CELL = 200  # maximum characters of a value that a notebook displays


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """A text that a search found. Fields that the search did not request are empty, and not displayed."""

    id: str
    score: float | None  # None if texts were listed without a query
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    index: int = 0  # number of the text's row in the corpus
    scores: dict[str, float] | None = None
    highlights: list[list[int]] = field(default_factory=list)
    snippet: dict[str, Any] | None = None
    source: str | None = None  # the text with its Markdown
    lines: list[int] = field(default_factory=list)  # the first and the last line of its file, from 1
    cells: list[int] = field(default_factory=list)  # the cells of a notebook that have these two lines, from 1
    group: str | None = None
    other_passages: list["Hit"] = field(default_factory=list)
    also_in: list[dict[str, str]] = field(default_factory=list)  # where other documents have the same section
    before: list["Hit"] = field(default_factory=list)  # passages before this one in its document, for `Search.get`
    after: list["Hit"] = field(default_factory=list)  # passages after it

    def __repr__(self) -> str:
        stated = {name: value for name in NAMES if (value := getattr(self, name)) not in (None, "", [], {})}
        return f"Hit({', '.join(f'{name}={value!r}' for name, value in stated.items())})"


NAMES = tuple(each.name for each in fields(Hit))
NESTED = ("other_passages", "before", "after")  # fields whose values are hits


def hit_of(result: Mapping[str, Any]) -> Hit:
    """Return a result or a passage of a reply as a hit. Fields that only a newer server has are left out."""
    known = {name: result[name] for name in NAMES if name in result}
    known |= {name: list(map(hit_of, known[name])) for name in NESTED if name in known}
    return Hit(**{"score": None} | known)


class Hits(list[Hit], Framed):
    """The hits of a search, best first. `facets`, `total`, `corrected` and `truncated` are those of the reply.

    A slice of them is `Hits` with the same attributes.

    Example:
        >>> from semsearch import Search
        >>> found = Search("bundle").search("coat", top_k=1, facets=["brand"])
        >>> len(found), found.total, found.facets["brand"]
        (1, 2, [{'value': 'North', 'count': 2}])
    """

    def __init__(
        self,
        reply: Mapping[str, Any],
        types: Callable[[], ColumnTypes] = dict,
        requested: Sequence[str] = (),
    ) -> None:
        """Take a reply of /similar, what returns the types of the columns of the index, and requested columns."""
        super().__init__(map(hit_of, reply["results"]))
        self.truncated: bool = reply["truncated"]
        self.facets: dict[str, list[dict[str, Any]]] = reply.get("facets") or {}
        self.total: int | None = reply.get("total")
        self.corrected: dict[str, list[str]] = reply.get("corrected") or {}
        self._types, self._requested = types, requested

    @overload
    def __getitem__(self, place: SupportsIndex) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Hit | Self:
        """Return one hit, or `Hits` with some of them."""
        if not isinstance(place, slice):
            return super().__getitem__(place)
        part = type(self).__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.extend(super().__getitem__(place))
        return part

    def __copy__(self) -> Self:
        """Return a copy without `__getstate__`, which can ask a server for the types."""
        return self[:]

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a pickle. The types are in it, and not the index or the connection."""
        return self.__dict__ | {"_types": partial(dict, self._types())}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each hit, with its id, score, text, index (the row) and metadata.

        `group`, `snippet` and `source` are there if the search requested them. A field of the metadata with one of
        these names gets the suffix `_metadata`.

        Example:
            >>> from semsearch import Search
            >>> Search("bundle").search("warm coat", top_k=1).to_dicts()[0]["brand"]
            'North'
        """
        columns = self._columns()
        names = free_names([name for hit in self for name in hit.metadata], columns)
        return [
            {column: getattr(hit, column) for column in columns}
            | {names[name]: value for name, value in hit.metadata.items()}
            for hit in self
        ]

    def _frame(self) -> list[FrameColumn]:
        return self._behind({})

    def _behind(self, first: Mapping[str, list[Any]]) -> list[FrameColumn]:
        """Return the columns of a frame, which begins with the values of `first`."""
        own = {name: [getattr(hit, name) for hit in self] for name in self._columns()}
        return frame_columns({**first, **own}, [hit.metadata for hit in self], self._types())

    def _columns(self) -> list[str]:
        found = {name for name in REQUESTED_COLUMNS if any(getattr(hit, name) is not None for hit in self)}
        return [*TABLE_COLUMNS, *(name for name in REQUESTED_COLUMNS if name in found or name in self._requested)]

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        rows = self.to_dicts()
        names = _names(rows, self._columns())
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        for row, hit in zip(rows, self, strict=True):
            row["text"] = Marked(hit.text, hit.highlights)
            if hit.snippet is not None:
                row["snippet"] = Marked(hit.snippet["text"], hit.snippet["highlights"])
        body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _names(rows: Iterable[Mapping[str, Any]], first: Iterable[str]) -> list[str]:
    """Return the names of all columns, each once, beginning with the first ones."""
    return list(dict.fromkeys([*first, *(name for row in rows for name in row)]))


class ManyHits(list[Hits], Framed):
    """The hits of each of several texts. A frame of them has the number of the text, from 0, as the column `query`.

    Example:
        >>> from semsearch import Search
        >>> found = Search("bundle").search_many(["warm coat", "light coat"], top_k=1)
        >>> [hits[0].id for hits in found], [*found.to_pandas()["query"]]
        (['c-1', 'c-2'], [0, 1])
    """

    def __init__(self, several: Iterable[Hits], none: Hits) -> None:
        """Take the hits of each text, and those of a search that finds none, which know the columns."""
        super().__init__(several)
        self._none = none

    def _frame(self) -> list[FrameColumn]:
        together = self._none[:]
        together.extend(hit for hits in self for hit in hits)
        return together._behind({"query": [number for number, hits in enumerate(self) for _ in hits]})


class Marked(NamedTuple):
    """A text whose highlights a notebook marks."""

    text: str
    highlights: Sequence[Sequence[int]]  # the first character of each, and the one after its last

    def html(self) -> str:
        """Return the beginning of the text in HTML."""
        parts, end = [], 0
        length = min(len(self.text), LONGEST_CELL)
        for first, last in self.highlights:
            if first < length:
                marked = f"<mark>{html.escape(self.text[first : min(last, length)])}</mark>"
                parts += [html.escape(self.text[end:first]), marked]
                end = min(last, length)
        return "".join([*parts, html.escape(self.text[end:length]), "…" * (length < len(self.text))])


def _cell(value: object) -> str:
    if isinstance(value, Marked):
        return f"<td>{value.html()}</td>"
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif value is None:
        text = ""
    else:
        text = str(value)
    if len(text) > LONGEST_CELL:
        text = f"{text[:LONGEST_CELL]}…"
    return f"<td>{html.escape(text)}</td>"
