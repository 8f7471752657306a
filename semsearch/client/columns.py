"""What `Search.columns` says of each column: its type, and its range or its most frequent values."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from semsearch.client.hits import Hits

RANGED = ("number", "date")  # types of columns that have a range
MOST_VALUES = 10  # most frequent values that are returned


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """A column that filters can name. Its lowest and highest values are None unless it has numbers or dates.

    With texts in S3 Vectors, only the type is known, and `rows` is None.
    """

    type: str  # string, list (strings), numbers (a list of them), number, date or boolean
    rows: int | None = None  # texts that have a value
    lowest: float | str | None = None
    highest: float | str | None = None
    values: Mapping[str | float | bool, int] = field(default_factory=dict)  # at most 10, and the texts that have each


def summarize_column(list_texts: Callable[..., Hits], name: str, kind: str) -> ColumnSummary:
    """Return what is known of a column; list_texts is `Search.search`. Numbers and dates take two searches."""
    has_value = {name: {"$exists": True}}
    if kind not in RANGED:
        found = list_texts(filter=has_value, facets=[name], top_k=1, include=())
        values = {each["value"]: each["count"] for each in found.facets[name][:MOST_VALUES]}
        return ColumnSummary(kind, found.total, values=values)
    first, last = (
        list_texts(filter=has_value, sort={name: way}, facets=[name], top_k=1, include=("metadata",))
        for way in ("asc", "desc")
    )
    return ColumnSummary(kind, first.total, _value(first, name, kind), _value(last, name, kind))


def _value(hits: Hits, name: str, kind: str) -> Any:
    """Return the value of the first hit. Numbers of a CSV that must not change their form are stored as text."""
    if not hits:
        return None
    value = hits[0].metadata[name]
    if kind == "number" and isinstance(value, str):
        return json.loads(value)
    return value
