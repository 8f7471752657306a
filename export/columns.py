"""The metadata of a corpus as typed columns that filters can compare: which types they have, and their tensors.

A column is of one type if all its values are: strings, numbers, booleans, lists of strings, or dates, which are strings
that all begin like 2024-05-31 and are ISO 8601. Anything else cannot be filtered. A CSV holds only strings, so a number
there has to be asked for. `function/engine/columns.py` reads the tensors and says what they are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from export.corpus import Corpus, CorpusError
from function.engine.arrays import AnyArray
from function.engine.columns import EXPECTED, Stored, stored_value

NONE = "none"  # the type of a column that filters cannot name
TYPES = (*EXPECTED, NONE)
LIST_OF_STRINGS = "a list of strings"
SHOWN = 40  # characters of a wrong value
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Metadata = Iterable[Mapping[str, object]]  # of each row


def choose_types(corpus: Corpus, asked: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the type of each column of the metadata, in alphabetical order: those asked for, else those that fit.

    Raises CorpusError, which names the source, if a column that was asked for is missing or a value does not fit.
    """
    possible: dict[str, set[str]] = {}
    for row, metadata in enumerate(map(json.loads, corpus.metadata)):
        for name, value in metadata.items():
            if (kind := asked.get(name)) is None:
                possible[name] = possible.get(name, set(EXPECTED)) & _types_of(value)
            elif kind != NONE and _stored(kind, value) is None:
                found = f"{_shown(value)} in the column {name!r}"
                raise CorpusError(
                    f"{source}, text {row} (from 0, id {corpus.ids[row]!r}): found {found}, expected "
                    f"{_expected(kind)}; correct it, or choose another type with --column {name}=TYPE"
                )
            else:
                possible[name] = {kind}
    for name in asked.keys() - possible.keys():
        close = get_close_matches(name, possible, n=1)
        advice = f"did you mean {close[0]!r}?" if close else "name another with --column"
        known = ", ".join(map(repr, sorted(possible))) or "(none)"
        raise CorpusError(f"{source}: found the columns {known}, expected a column {name!r} with values; {advice}")
    return {name: _narrowest(kinds) for name, kinds in sorted(possible.items())}


def _types_of(value: object) -> set[str]:
    """Return the types that a value may have: a string may be a date too."""
    if isinstance(value, str) and not DATE.match(value):
        return {"string"}
    kinds = ("list",) if isinstance(value, list) else ("string", "date") if isinstance(value, str) else EXPECTED
    return {kind for kind in kinds if _stored(kind, value) is not None}


def _narrowest(kinds: set[str]) -> str:
    return "date" if "date" in kinds else next(iter(kinds), NONE)


def _expected(kind: str) -> str:
    return LIST_OF_STRINGS if kind == "list" else EXPECTED[kind]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _stored(kind: str, value: object) -> list[Stored] | None:
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

    Raises ValueError if a value is not of its column's type.
    """
    filled: dict[str, list[int]] = {name: [] for name in types}  # the rows that have a value
    stored: dict[str, list[list[Stored]]] = {name: [] for name in types}
    count = 0
    for count, values in enumerate(metadata, 1):
        for name in values.keys() & types.keys():
            found = _stored(types[name], values[name])
            if found is None:
                raise ValueError(f"row {count - 1}: {_shown(values[name])} in the column {name!r}")
            filled[name].append(count - 1)
            stored[name].append(found)
    tensors: dict[str, AnyArray] = {}
    for name, kind in types.items():
        parts = _parts(kind, np.array(filled[name], np.uint32), stored[name], count)
        tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    return tensors


def _parts(kind: str, rows: AnyArray, stored: list[list[Stored]], count: int) -> dict[str, AnyArray]:
    """Return the tensors of one column of `count` rows; `rows` (uint32) have the values `stored`."""
    flat = [value for values in stored for value in values]
    parts: dict[str, AnyArray]
    if kind == "list":
        parts = _words(flat) | {"rows": np.repeat(rows, [len(values) for values in stored])}
    elif kind == "string":
        parts = _words(flat)
        parts["codes"] = _spread(parts["codes"], rows, count)
    else:
        values = np.array(flat, _dtype(kind, flat))
        each = _spread(values, rows, count)
        distinct, places = np.unique(values, return_inverse=True)
        codes = _spread(places.astype(_smallest_dtype(len(distinct))), rows, count)
        is_smaller = distinct.nbytes + codes.nbytes < each.nbytes
        parts = {"values": distinct, "codes": codes} if is_smaller else {"values": each}
    if len(rows) < count:
        parts["present"] = np.packbits(_spread(np.ones(len(rows), np.uint8), rows, count))
    return parts


def _words(flat: list[Stored]) -> dict[str, AnyArray]:
    """Return the dictionary of strings in UTF-8, and the place of each in it."""
    words = sorted({word for word in flat if isinstance(word, bytes)})
    places = {word: place for place, word in enumerate(words)}
    return {
        "values": np.frombuffer(b"".join(words), np.uint8),
        "offsets": np.cumsum([0, *map(len, words)], dtype=np.uint64),
        "codes": np.array([places[word] for word in flat if isinstance(word, bytes)], _smallest_dtype(len(words))),
    }


def _spread(values: AnyArray, rows: AnyArray, count: int) -> AnyArray:
    """Return an array of `count` zeros with the values at their rows."""
    spread = np.zeros(count, values.dtype)
    spread[rows] = values
    return spread


def _dtype(kind: str, values: list[Stored]) -> type[np.generic]:
    """Return the dtype of a column's numbers: float64 if some are fractions or too large for int64."""
    if kind == "boolean":
        return np.uint8
    are_whole = all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values)
    return np.int64 if are_whole else np.float64


def _smallest_dtype(count: int) -> "np.dtype[np.generic]":
    """Return the smallest unsigned dtype that tells so many values apart."""
    return np.min_scalar_type(max(count - 1, 0))
