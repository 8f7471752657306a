"""The metadata of a corpus as typed columns that filters can compare: which types they have, and their tensors.

A column has a type if all its values have it: strings, numbers, booleans, lists of strings, lists of numbers, or dates,
which are strings that all begin like 2024-05-31 and are ISO 8601. Other columns cannot be filtered. A CSV holds only
strings, so there a column of strings that are all numbers has the type number. Numbers that no dtype holds exactly are
refused, since a filter would find the wrong rows. `semsearch/engine/metadata/columns.py` reads the tensors and
describes them.
"""

import json
import re
import reprlib
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

import numpy as np

from semsearch.engine.metadata.columns import EXPECTED_VALUES, LIST_TYPES, Stored, stored_value
from semsearch.engine.tensors import AnyArray
from semsearch.engine.values import EXACT_FLOATS
from semsearch.indexing.corpus import Corpus, CorpusError
from semsearch.indexing.corpus.columns import require_column
from semsearch.indexing.corpus.corpus import PassageRow, corpus_error
from semsearch.indexing.corpus.formats import compact_json
from semsearch.indexing.corpus.passages import writing_passages

NONE = "none"  # the type of a column that filters cannot name
COLUMN_TYPES = (*EXPECTED_VALUES, NONE)
EXPECTED_LISTS = {"list": "a list of strings", "numbers": "a list of numbers"}
TYPES_OF_JSON: dict[type, tuple[str, ...]] = {
    str: ("string", "date"),
    int: ("number",),
    float: ("number",),
    bool: ("boolean",),
    list: LIST_TYPES,
}
MOST_NUMBERS = 100  # numbers of a list that becomes a column by itself; an embedding has more
NUMERIC_TYPES = frozenset(["number", "numbers"])
DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class NumberRange:
    """The range of a column's numbers, and the dtype that holds all of them exactly."""

    def __init__(self) -> None:
        self.rounded: int | None = None  # the first whole number that float64 would round
        self._least = self._most = 0  # the range of the whole numbers, 0 included
        self._has_fraction = False

    def add(self, number: int | float) -> None:
        """Add a number that is neither NaN nor infinite."""
        if isinstance(number, float) and not number.is_integer():
            self._has_fraction = True
            return
        whole = int(number)
        self._least, self._most = min(self._least, whole), max(self._most, whole)
        if self.rounded is None and abs(whole) > EXACT_FLOATS:
            is_float = abs(whole) <= sys.float_info.max and float(whole) == whole
            self.rounded = None if is_float else whole

    @property
    def dtype(self) -> "np.dtype[np.generic] | None":
        """The first that fits of int64, uint64 and float64; None if none does."""
        if not self._has_fraction and self._least >= -(2**63) and self._most < 2**63:
            return np.dtype(np.int64)
        if not self._has_fraction and self._least == 0 and self._most < 2**64:
            return np.dtype(np.uint64)
        if self.rounded is None:
            return np.dtype(np.float64)
        return None


def choose_types(corpus: Corpus, requested: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the type of each column of the metadata, in alphabetical order: the requested one, else one that fits.

    Raises CorpusError, which names the source, if a requested column is missing, if a value does not fit, if
    numbers cannot be stored exactly, or if filters could not name a column.
    """
    kinds: dict[str, frozenset[str]] = {}  # the types that all values of a column have
    ranges: dict[str, NumberRange] = {}
    for row, metadata in enumerate(map(json.loads, corpus.metadata)):
        for name, value in metadata.items():
            kind = requested.get(name)
            if kind in (None, NONE):
                fitting = _types_of(value) if kind is None else frozenset([NONE])
            elif stored_values(kind, value) is not None:
                fitting = frozenset([kind])
            else:
                place = f"text {row} (from 0, id {corpus.ids[row]!r})"
                expected = EXPECTED_LISTS.get(kind) or EXPECTED_VALUES[kind]
                remedy = f"correct it, or choose another type with --column {name}=TYPE"
                raise corpus_error(source, place, f"{reprlib.repr(value)} in the column {name!r}", expected, remedy)
            kinds[name] = kinds.get(name, fitting) & fitting
            for numeric in kinds[name] & NUMERIC_TYPES:
                for number in stored_values(numeric, value) or ():
                    ranges.setdefault(name, NumberRange()).add(number)  # type: ignore[arg-type] # no bytes
    for name in sorted(name for name in requested if requested[name] != NONE):
        require_column(source, sorted(kinds), name, "--column")
    types = {name: min(kinds[name], default=NONE) for name in sorted(kinds)}
    for name, kind in types.items():
        left_out = f"leave it out of filters with --column {quote(f'{name}={NONE}')}"
        if kind != NONE and name.startswith("$"):
            raise CorpusError(
                f"{source}: found the column {name!r}, expected no $ at its beginning; rename it, or {left_out}"
            )
        if kind in NUMERIC_TYPES and ranges[name].dtype is None:
            found = f"{reprlib.repr(ranges[name].rounded)} in the column {name!r}"
            expected = "numbers that 64 bits hold exactly"
            remedy = f"compare the column as strings with --column {quote(f'{name}=string')}, or {left_out}"
            raise corpus_error(source, None, found, expected, remedy)
    return types


def numeric_strings(corpus: Corpus, types: Mapping[str, str]) -> list[str]:
    """Return which columns of strings have only numbers that can be stored exactly, as all numbers of a CSV are."""
    found = {name: NumberRange() for name, kind in types.items() if kind == "string"}
    for metadata in corpus.metadata:
        if not found:  # after the first rows, unless there is such a column
            break
        row = json.loads(metadata)
        for name in found.keys() & row.keys():
            if (values := stored_values("number", row[name])) is None:
                del found[name]
            else:
                found[name].add(*values)  # type: ignore[arg-type] # no bytes
    return sorted(name for name, numbers in found.items() if numbers.dtype is not None)


def store_numbers(corpus: Corpus, passages: Path) -> None:
    """Write numbers in place of the strings of a CSV, in the columns of numbers whose strings JSON writes the same.

    A column with a number such as 1.10 or 1e3 keeps its strings, because a number would be shown in another form.
    passages is the file of the corpus, whose columns are chosen.
    """
    names = {name for name, kind in corpus.columns.items() if kind == "number"}
    for metadata in corpus.metadata:
        if not names:
            return
        row = json.loads(metadata)
        strings = {name: row[name] for name in names & row.keys() if isinstance(row[name], str)}
        names -= {name for name, value in strings.items() if json.dumps(json.loads(value)) != value}
    fresh = passages.with_name("numbers.safetensors")
    with writing_passages(fresh) as written:
        for text, id, metadata in zip(corpus.texts, corpus.ids, corpus.metadata, strict=True):
            row = json.loads(metadata)
            row |= {name: json.loads(row[name]) for name in names & row.keys() if isinstance(row[name], str)}
            written.append(PassageRow(text, id, compact_json(row)))
    fresh.replace(passages)


def describe_mixed(corpus: Corpus, types: Mapping[str, str]) -> dict[str, str]:
    """Return a warning for each column without a type, and for each column of strings that are mostly dates.

    It names the first row whose value differs from most of the others.
    """
    watched = {name for name, kind in types.items() if kind in (NONE, "string")}
    counts: dict[str, Counter[str]] = {name: Counter() for name in watched}
    first: dict[tuple[str, str], str] = {}
    for row, metadata in enumerate(corpus.metadata):
        if not watched:
            break
        for name, value in json.loads(metadata).items():
            if name in watched:
                kind = _describe_kind(value)
                counts[name][kind] += 1
                if (name, kind) not in first:
                    first[name, kind] = f"row {row} (id {corpus.ids[row]}) has {reprlib.repr(value)}"
    warnings = {}
    for name, kinds in sorted(counts.items()):
        ranked = kinds.most_common(2)
        if len(ranked) > 1 and (types[name] == NONE or ranked[0][0] == "dates"):
            (usual, count), (other, _) = ranked
            found = f"{name} has {usual} in {count:,} of {kinds.total():,} rows, and {first[name, other]}"
            effect = "filters, sort and facets cannot use it"
            if types[name] != NONE:
                effect = "it is compared as text"
            warnings[name] = f"{found}, so {effect}; correct that row"
    return warnings


def _describe_kind(value: object) -> str:
    kinds = _types_of(value)
    if "date" in kinds:
        return "dates"
    if kinds == {"numbers"}:
        return "lists of numbers"
    return next((f"{kind}s" for kind in sorted(kinds)), "other values")


def _types_of(value: object) -> frozenset[str]:
    if isinstance(value, str) and not DATE_PATTERN.match(value):
        return frozenset(["string"])
    kinds = TYPES_OF_JSON.get(type(value), ())
    if isinstance(value, list) and len(value) > MOST_NUMBERS:
        kinds = ("list",)
    return frozenset(kind for kind in kinds if stored_values(kind, value) is not None)


def stored_values(kind: str, value: object) -> list[Stored] | None:
    """Return what a column of this type stores for a value, None if the value does not fit the type.

    A list has its different values, another type one value. A string can be the JSON of a number, a boolean (also
    capitalized, as Python writes it) or a list, because a CSV has no other way to state one. A number fits a column of
    strings as its JSON.
    """
    try:
        if kind == "string" and type(value) in (int, float):
            value = json.dumps(value)
        if isinstance(value, str) and kind in ("number", "boolean", *LIST_TYPES):
            value = json.loads(value.lower() if kind == "boolean" else value)
        if kind not in LIST_TYPES:
            return [stored_value(kind, value)]
        if not isinstance(value, list):
            return None
        return list(dict.fromkeys(stored_value(kind, each) for each in value if each is not None))
    except (ValueError, RecursionError):
        return None


class _Column:
    """The values of a column, collected row by row; equal values share their memory."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._rows = array("I")  # rows that have a value
        self._values: list[Stored] = []
        self._owners = array("I")  # the row of each value; a row can have several values of a list, or none
        self._known: dict[Stored, Stored] = {}

    def add(self, row: int, values: Sequence[Stored]) -> None:
        """Add what `stored_values` returns for the next row that has a value."""
        self._rows.append(row)
        for value in values:
            self._owners.append(row)
            self._values.append(self._known.setdefault(value, value))

    def tensors(self, count: int) -> dict[str, AnyArray]:
        """Return the tensors of a column of `count` rows: with a dictionary where that takes fewer bytes."""
        rows = np.asarray(self._rows)
        tensors = self._words(count) if self._kind in ("string", "list") else self._numbers(count)
        if len(rows) < count:
            tensors["present"] = np.packbits(_spread(np.ones(len(rows), np.uint8), rows, count))
        return tensors

    def _words(self, count: int) -> dict[str, AnyArray]:
        words = sorted(word for word in self._known if isinstance(word, bytes))
        places: dict[Stored, int] = {word: place for place, word in enumerate(words)}
        codes = np.fromiter(map(places.__getitem__, self._values), _smallest_dtype(len(words)), len(self._values))
        owners = np.asarray(self._owners)
        tensors: dict[str, AnyArray] = {
            "values": np.frombuffer(b"".join(words), np.uint8),
            "offsets": np.cumsum([0, *map(len, words)], dtype=np.uint64),
        }
        if self._kind == "list":
            return tensors | {"codes": codes, "rows": owners}
        return tensors | {"codes": _spread(codes, owners, count)}

    def _numbers(self, count: int) -> dict[str, AnyArray]:
        numbers = NumberRange()
        for number in self._known:
            assert not isinstance(number, bytes)
            numbers.add(number)
        rows, values = (
            np.asarray(self._rows),
            np.array(self._values, np.uint8 if self._kind == "boolean" else numbers.dtype),
        )
        if self._kind == "numbers":
            distinct, codes = np.unique(values, return_inverse=True)
            owners = np.asarray(self._owners)
            return {"values": distinct, "codes": codes.astype(_smallest_dtype(len(distinct))), "rows": owners}
        each = _spread(values, rows, count)
        distinct, places = np.unique(values, return_inverse=True)
        codes = _spread(places.astype(_smallest_dtype(len(distinct))), rows, count)
        is_smaller = distinct.nbytes + codes.nbytes < each.nbytes
        if is_smaller:
            return {"values": distinct, "codes": codes}
        return {"values": each}


def column_tensors(metadata: Iterable[Mapping[str, object]], types: Mapping[str, str]) -> dict[str, AnyArray]:
    """Return the tensors of a columns.safetensors, which semsearch/engine/metadata/columns.py describes.

    The metadata, a mapping for each row, is read once, and `choose_types` returned the types.
    Raises ValueError if a value does not fit its column's type.
    """
    columns = {name: _Column(kind) for name, kind in types.items()}
    count = 0
    for count, values in enumerate(metadata, 1):
        for name in columns.keys() & values.keys():
            stored = stored_values(types[name], values[name])
            if stored is None:
                raise ValueError(f"row {count - 1}: {reprlib.repr(values[name])} in the column {name!r}")
            columns[name].add(count - 1, stored)
    tensors: dict[str, AnyArray] = {}
    for name in types:
        parts = columns.pop(name).tensors(count)
        tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    return tensors


def _spread(values: AnyArray, rows: AnyArray, count: int) -> AnyArray:
    spread = np.zeros(count, values.dtype)
    spread[rows] = values
    return spread


def _smallest_dtype(count: int) -> "np.dtype[np.generic]":
    return np.min_scalar_type(max(count - 1, 0))


def section_tensor(corpus: Corpus) -> AnyArray:
    """Return the tensor `sections` of a corpus of documents, (rows,) uint32.

    A section is a document and an anchor in it. Where there is no anchor, it is a document and the headings.
    """
    first: dict[tuple[object, ...], int] = {}
    rows = np.empty(len(corpus.texts), np.uint32)
    contents: dict[int, list[bytes]] = defaultdict(list)  # a section's, by its first row
    for row, (text, metadata) in enumerate(zip(corpus.texts, map(json.loads, corpus.metadata), strict=True)):
        headings = tuple(metadata.get("headings", ()))
        anchor = urlsplit(metadata.get("url", "")).fragment
        rows[row] = first.setdefault((metadata["path"], anchor or headings), row)
        content = json.dumps([metadata.get("title"), headings, text])
        contents[int(rows[row])].append(sha256(content.encode()).digest())
    alike: dict[bytes, int] = {}  # the first row of the first section with these texts
    shared = np.arange(len(rows), dtype=np.uint32)
    for row, digests in contents.items():
        shared[row] = alike.setdefault(b"".join(digests), row)
    return shared[rows]
