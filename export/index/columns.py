"""The metadata of a corpus as typed columns that filters can compare: which types they have, and their tensors.

A column is of one type if all its values are: strings, numbers, booleans, lists of strings, or dates, which are strings
that all begin like 2024-05-31 and are ISO 8601. Anything else cannot be filtered. A CSV holds only strings, so a number
there has to be asked for. `function/engine/columns.py` reads the tensors and says what they are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from export.corpus import Corpus, CorpusError
from export.index.column_values import Numbers, Words
from function.engine.arrays import AnyArray
from function.engine.columns import EXPECTED, Stored, stored_value

NONE = "none"  # the type of a column that filters cannot name
TYPES = (*EXPECTED, NONE)
LIST_OF_STRINGS = "a list of strings"
SHOWN = 40  # characters of a wrong value
REMEMBERED = 1 << 14  # strings of which the type and the stored form are looked up when they occur again
TYPES_OF_JSON: dict[type, tuple[str, ...]] = {
    str: ("string", "date"),
    int: ("number",),
    float: ("number",),
    bool: ("boolean",),
    list: ("list",),
}
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Metadata = Iterable[Mapping[str, object]]  # of each row


def choose_types(corpus: Corpus, asked: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the type of each column of the metadata, in alphabetical order: those asked for, else those that fit.

    Raises CorpusError, which names the source, if a column that was asked for is missing or a value does not fit.
    """
    possible: dict[str, frozenset[str]] = {}
    recall, recall_types = lru_cache(REMEMBERED)(stored_values), lru_cache(REMEMBERED)(_types_of)
    for row, metadata in enumerate(map(json.loads, corpus.metadata)):
        for name, value in metadata.items():
            is_string = isinstance(value, str)
            if (kind := asked.get(name)) is None:
                kinds = recall_types(value) if is_string else _types_of(value)
                possible[name] = possible.get(name, kinds) & kinds
            elif kind != NONE and (recall(kind, value) if is_string else stored_values(kind, value)) is None:
                found = f"{_shown(value)} in the column {name!r}"
                raise CorpusError(
                    f"{source}, text {row} (from 0, id {corpus.ids[row]!r}): found {found}, expected "
                    f"{_expected(kind)}; correct it, or choose another type with --column {name}=TYPE"
                )
            else:
                possible[name] = frozenset([kind])
    for name in asked.keys() - possible.keys():
        close = get_close_matches(name, possible, n=1)
        advice = f"did you mean {close[0]!r}?" if close else "name another with --column"
        known = ", ".join(map(repr, sorted(possible))) or "(none)"
        raise CorpusError(f"{source}: found the columns {known}, expected a column {name!r} with values; {advice}")
    return {name: _narrowest(kinds) for name, kinds in sorted(possible.items())}


def _types_of(value: object) -> frozenset[str]:
    """Return the types that a value may have: a string may be a date too."""
    if isinstance(value, str) and not DATE.match(value):
        return frozenset(["string"])
    return frozenset(kind for kind in TYPES_OF_JSON.get(type(value), ()) if stored_values(kind, value) is not None)


def _narrowest(kinds: frozenset[str]) -> str:
    return "date" if "date" in kinds else next(iter(kinds), NONE)


def _expected(kind: str) -> str:
    return LIST_OF_STRINGS if kind == "list" else EXPECTED[kind]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def stored_values(kind: str, value: object) -> list[Stored] | None:
    """Return what a column of this type stores of a value, None if the value is not of the type.

    A list has its different strings, another type one value. A string may hold the JSON of a number, a boolean (in
    capitals too, as Python writes it) or a list, because a CSV has no other way to state one.
    """
    try:
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
    """Return the tensors of a columns.safetensors: for each column those that function/engine/columns.py describes.

    The metadata is read once, and only one row of it is in memory. Raises ValueError if a value is not of its column's
    type.
    """
    columns = {name: Words(kind) if kind in ("string", "list") else Numbers(kind) for name, kind in types.items()}
    recall = lru_cache(REMEMBERED)(stored_values)
    count = 0
    for count, values in enumerate(metadata, 1):
        for name, value in values.items():
            if name in columns:
                stored = recall(types[name], value) if isinstance(value, str) else stored_values(types[name], value)
                if stored is None:
                    raise ValueError(f"row {count - 1}: {_shown(value)} in the column {name!r}")
                columns[name].add(count - 1, stored)
    tensors: dict[str, AnyArray] = {}
    for name in types:
        parts = columns.pop(name).tensors(count)
        tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    return tensors
