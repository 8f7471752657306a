"""The metadata of a corpus as typed columns that filters can compare: which types they have, and their tensors.

A column has a type if all its values have it: strings, numbers, booleans, lists of strings, or dates, which are strings
that all begin like 2024-05-31 and are ISO 8601. Other columns cannot be filtered. A CSV holds only strings, so a column
of numbers needs --column there. Numbers that no dtype holds exactly are refused, since a filter would find the wrong
rows. `function/engine/metadata/columns.py` reads the tensors and describes them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from shlex import quote

from export.corpus import Corpus, CorpusError
from export.index.column_values import NumberRange, Numbers, Words
from function.engine.arrays import AnyArray
from function.engine.metadata.columns import EXPECTED, Stored, stored_value

NONE = "none"  # the type of a column that filters cannot name
TYPES = (*EXPECTED, NONE)
LIST_OF_STRINGS = "a list of strings"
SHOWN = 40  # maximum characters of a wrong value in a message
REMEMBERED = 1 << 14  # strings whose type and stored form are cached
TYPES_OF_JSON: dict[type, tuple[str, ...]] = {
    str: ("string", "date"),
    int: ("number",),
    float: ("number",),
    bool: ("boolean",),
    list: ("list",),
}
NUMBER = frozenset(["number"])
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Metadata = Iterable[Mapping[str, object]]  # one mapping for each row


@dataclass(slots=True)
class _Column:
    """A column as far as it is read: the types that all its values have, and the range of its numbers."""

    kinds: frozenset[str]
    numbers: NumberRange = field(default_factory=NumberRange)
    rounded_row: int | None = None  # the row with `numbers.rounded`


def choose_types(corpus: Corpus, requested: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the type of each column of the metadata, in alphabetical order: the requested one, else one that fits.

    Raises CorpusError, which names the source, if a requested column is missing, if a value does not fit, if
    numbers cannot be stored exactly, or if filters could not name a column.
    """
    columns: dict[str, _Column] = {}
    stored_of, types_of = lru_cache(REMEMBERED)(stored_values), lru_cache(REMEMBERED)(_types_of)
    for row, metadata in enumerate(map(json.loads, corpus.metadata)):
        for name, value in metadata.items():
            is_string, number = isinstance(value, str), value
            if (kind := requested.get(name)) is None:
                kinds = types_of(value) if is_string else _types_of(value)
            else:
                kinds = frozenset([kind])
                stored = [] if kind == NONE else stored_of(kind, value) if is_string else stored_values(kind, value)
                if stored is None:
                    fitting = LIST_OF_STRINGS if kind == "list" else EXPECTED[kind]
                    raise CorpusError(
                        f"{_place(source, corpus, row)}: found {_shown(value)} in the column {name!r}, expected "
                        f"{fitting}; correct it, or choose another type with --column {name}=TYPE"
                    )
                if kind == "number":
                    (number,) = stored
            if (column := columns.get(name)) is None:
                column = columns[name] = _Column(kinds)
            column.kinds &= kinds
            if column.kinds == NUMBER:
                column.numbers.add(number)
                if column.rounded_row is None and column.numbers.rounded is not None:
                    column.rounded_row = row
    for name in sorted(name for name in requested.keys() - columns.keys() if requested[name] != NONE):
        close = get_close_matches(name, columns, n=1)
        advice = (
            f"did you mean {close[0]!r}?" if close else f"name another, or write --column {quote(f'{name}={NONE}')}"
        )
        known = ", ".join(map(repr, sorted(columns))) or "(none)"
        raise CorpusError(f"{source}: found the columns {known}, expected a column {name!r} with values; {advice}")
    types = {
        name: "date" if "date" in column.kinds else next(iter(column.kinds), NONE)
        for name, column in sorted(columns.items())
    }
    for name, kind in types.items():
        _require_filterable(source, corpus, name, kind, columns[name])
    return types


def numeric_strings(corpus: Corpus, types: Mapping[str, str]) -> list[str]:
    """Return which columns of strings have only numbers, as all numbers of a CSV are."""
    found = {name for name, kind in types.items() if kind == "string"}
    for metadata in corpus.metadata:
        if not found:  # after the first rows, unless there is such a column
            break
        row = json.loads(metadata)
        found -= {name for name in found & row.keys() if stored_values("number", row[name]) is None}
    return sorted(found)


def _require_filterable(source: Path, corpus: Corpus, name: str, kind: str, column: _Column) -> None:
    """Raise CorpusError if filters could not name a column that has a type, or not compare its numbers exactly."""
    left_out = f"leave it out of filters with --column {quote(f'{name}={NONE}')}"
    if kind != NONE and name.startswith("$"):
        raise CorpusError(
            f"{source}: found the column {name!r}, expected no $ at the beginning of a name, because $and and the like "
            f"are operators of filters; rename it, or {left_out}"
        )
    if kind == "number" and column.rounded_row is not None and column.numbers.typecode is None:
        raise CorpusError(
            f"{_place(source, corpus, column.rounded_row)}: found {_shown(column.numbers.rounded)} in the column "
            f"{name!r}, expected whole numbers that all fit into 64 bits, or numbers that float64 holds exactly, so "
            f"that filters can distinguish it from its neighbours; compare the column as strings with "
            f"--column {quote(f'{name}=string')}, or {left_out}"
        )


def _place(source: Path, corpus: Corpus, row: int) -> str:
    return f"{source}, text {row} (from 0, id {corpus.ids[row]!r})"


def _types_of(value: object) -> frozenset[str]:
    """Return the types that fit a value: a date is a string too."""
    if isinstance(value, str) and not DATE.match(value):
        return frozenset(["string"])
    return frozenset(kind for kind in TYPES_OF_JSON.get(type(value), ()) if stored_values(kind, value) is not None)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def stored_values(kind: str, value: object) -> list[Stored] | None:
    """Return what a column of this type stores for a value, None if the value does not fit the type.

    A list has its different strings, another type one value. A string can be the JSON of a number, a boolean (also
    capitalized, as Python writes it) or a list, because a CSV has no other way to state one. A number fits a column of
    strings as its JSON.
    """
    try:
        if kind == "string" and type(value) in (int, float):
            value = json.dumps(value)
        if isinstance(value, str) and kind in ("number", "boolean", "list"):
            value = json.loads(value.lower() if kind == "boolean" else value)
        if kind != "list":
            return [stored_value(kind, value)]
        if not isinstance(value, list):
            return None
        return list(dict.fromkeys(stored_value(kind, each) for each in value if each is not None))
    except (ValueError, RecursionError):
        return None


def column_tensors(metadata: Metadata, types: Mapping[str, str]) -> dict[str, AnyArray]:
    """Return the tensors of a columns.safetensors, which function/engine/metadata/columns.py describes.

    The metadata is read once, and only one row of it is in memory. Raises ValueError if a value does not fit its
    column's type.
    """
    columns = {name: Words(kind) if kind in ("string", "list") else Numbers(kind) for name, kind in types.items()}
    stored_of = lru_cache(REMEMBERED)(stored_values)
    count = 0
    for count, values in enumerate(metadata, 1):
        for name, value in values.items():
            if name in columns:
                stored = stored_of(types[name], value) if isinstance(value, str) else stored_values(types[name], value)
                if stored is None:
                    raise ValueError(f"row {count - 1}: {_shown(value)} in the column {name!r}")
                columns[name].add(count - 1, stored)
    tensors: dict[str, AnyArray] = {}
    for name in types:
        parts = columns.pop(name).tensors(count)
        tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    return tensors
