"""The metadata of a corpus as typed columns that filters can compare: which types they have, and their tensors.

A column has a type if all its values have it: strings, numbers, booleans, lists of strings, lists of numbers, or dates,
which are strings that all begin like 2024-05-31 and are ISO 8601. Other columns cannot be filtered. A CSV holds only
strings, so there a column of strings that are all numbers has the type number. Numbers that no dtype holds exactly are
refused, since a filter would find the wrong rows. The types follow from the facts of the values (facts.py), so JSON is
parsed for messages only. `semsearch/engine/metadata/columns.py` reads the tensors and describes them.
"""

import json
import reprlib
from array import array
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np

from semsearch.engine.bundle import CorpusInfo
from semsearch.engine.hits import Mask
from semsearch.engine.metadata.columns import EXPECTED_VALUES, LIST_TYPES, PARTS, STRING_TYPES, Stored
from semsearch.engine.tensors import AnyArray, Array, Strings
from semsearch.indexing.corpus import Corpus, CorpusError
from semsearch.indexing.corpus.columns import require_column
from semsearch.indexing.corpus.corpus import PassageRow, corpus_error
from semsearch.indexing.corpus.formats import compact_json
from semsearch.indexing.corpus.passages import strings_at, writing_passages
from semsearch.indexing.digests import Positions
from semsearch.indexing.facts import (
    FITS,
    FLOAT64,
    NUMERIC_TYPES,
    SAME_JSON,
    count_facts,
    is_rounded,
    numbers_dtype,
    own_types,
    stored_values,
)

NONE = "none"  # the type of a column that filters cannot name
COLUMN_TYPES = (*EXPECTED_VALUES, NONE)
EXPECTED_LISTS = {"list": "a list of strings", "numbers": "a list of numbers"}
DTYPES_OF_TYPES: Mapping[str, "np.dtype[np.generic]"] = {  # dtype of a column, by type, where all values have the same
    "boolean": np.dtype(np.uint8),
    "date": np.dtype(np.int64),
}


def choose_types(corpus: Corpus, requested: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the type of each column of the metadata, in alphabetical order: the requested one, else one that fits.

    Raises CorpusError, which names the source, if a requested column is missing, if a value does not fit, if
    numbers cannot be stored exactly, or if filters could not name a column.
    """
    _require_fitting(corpus, requested, source)
    different = {name: count_facts(corpus.facts[name]) for name in sorted(corpus.facts)}
    for name in sorted(name for name in requested if requested[name] != NONE):
        require_column(source, list(different), name, "--column")
    types = {}
    for name, facts in different.items():
        fitting = frozenset.intersection(*map(own_types, facts))
        types[name] = requested.get(name) or min(fitting, default=NONE)
    for name, kind in types.items():
        left_out = f"leave it out of filters with --column {quote(f'{name}={NONE}')}"
        if kind != NONE and name.startswith("$"):
            raise CorpusError(
                f"{source}: found the column {name!r}, expected no $ at its beginning; rename it, or {left_out}"
            )
        if kind in NUMERIC_TYPES and numbers_dtype(different[name]) is None:
            column = corpus.facts[name]
            row = _first((column != 0) & (column & FLOAT64 == 0))
            numbers = stored_values(kind, _value(corpus, row, name)) or ()
            found = f"{reprlib.repr(next(filter(is_rounded, numbers)))} in the column {name!r}"
            expected = "numbers that 64 bits hold exactly"
            remedy = f"compare the column as strings with --column {quote(f'{name}=string')}, or {left_out}"
            raise corpus_error(source, None, found, expected, remedy)
    return types


def _require_fitting(corpus: Corpus, requested: Mapping[str, str], source: Path) -> None:
    """Raise CorpusError for the first value, row by row, that does not fit the requested type of its column."""
    misfits: dict[str, _Misfit] = {}
    for name in requested.keys() & corpus.facts.keys():
        kind = requested[name]
        if kind != NONE:
            column = corpus.facts[name]
            is_misfit = (column != 0) & (column & FITS[kind] == 0)
            if is_misfit.any():
                misfits[name] = _Misfit(_first(is_misfit), EXPECTED_LISTS.get(kind) or EXPECTED_VALUES[kind])
    _refuse_first(corpus, misfits, source, "choose another type with --column {}=TYPE")


def require_same_types(corpus: Corpus, older: CorpusInfo | None, requested: Collection[str], source: Path) -> None:
    """Raise CorpusError for the first value, row by row, of another type than its column.

    The type is that of the index `older` into which the texts are merged, if it has the column, else the one that most
    values have. Columns of a requested type are left out, and so are those that have values of several types in the
    older index.
    """
    misfits: dict[str, _Misfit] = {}
    for name in corpus.facts.keys() - requested:
        column = corpus.facts[name]
        if older is not None and name in older.columns:
            kind = older.columns[name]
            fitting = [facts for facts in count_facts(column) if _can_join(facts, kind)]
            expected = f"{EXPECTED_LISTS.get(kind) or EXPECTED_VALUES[kind]}, as the index has there"
        elif name in corpus.mixed and (older is None or name not in older.untyped):
            usual = _rank_kinds(column)[0].kind
            fitting = [facts for facts in count_facts(column) if _describe_kind(facts) == usual]
            expected = f"{usual}, as most rows have there"
        else:
            continue
        is_misfit = (column != 0) & ~np.isin(column, fitting)
        if is_misfit.any():
            misfits[name] = _Misfit(_first(is_misfit), expected)
    _refuse_first(corpus, misfits, source, "leave out --strict")


def _can_join(facts: int, kind: str) -> bool:
    """Return whether a column keeps its type with a value of these facts: one of numbers has strings of a CSV too."""
    return kind in own_types(facts) or (kind == "number" and bool(facts & FITS["number"]))


class _Misfit(NamedTuple):
    """The first row of a column whose value has another type, and which one was expected."""

    row: int
    expected: str


def _refuse_first(corpus: Corpus, misfits: Mapping[str, _Misfit], source: Path, remedy: str) -> None:
    """Raise CorpusError for the first one of the misfits, which are by column, if there are any.

    {} in the remedy is the name of the column.
    """
    if not misfits:
        return
    row = min(misfit.row for misfit in misfits.values())
    values = json.loads(corpus.metadata[row])
    name = next(name for name in values if name in misfits and misfits[name].row == row)
    place = f"text {row} (from 0, id {corpus.ids[row]!r})"
    found = f"{reprlib.repr(values[name])} in the column {name!r}"
    raise corpus_error(source, place, found, misfits[name].expected, f"correct it, or {remedy.format(name)}")


def _first(mask: Mask) -> int:
    return int(mask.argmax())


def _value(corpus: Corpus, row: int, name: str) -> object:
    return json.loads(corpus.metadata[row])[name]


def columns_of_numbers(corpus: Corpus, types: Mapping[str, str], kinds: Collection[str]) -> list[str]:
    """Return which columns of these types have only numbers, or strings that are, which can be stored exactly."""
    found = []
    for name in sorted(name for name, kind in types.items() if kind in kinds):
        different = count_facts(corpus.facts[name])
        if all(facts & FITS["number"] for facts in different) and numbers_dtype(different) is not None:
            found.append(name)
    return found


def store_numbers(corpus: Corpus, passages: Path, before: Mapping[str, str]) -> None:
    """Write numbers in place of the strings of a CSV, in the columns of numbers whose strings JSON writes the same.

    A column with a number such as 1.10 or 1e3 keeps its strings, because a number would be shown in another form.
    passages is the file of the corpus, whose columns are chosen. before has the types of the columns of an index into
    which the rows are merged: a column that is none of numbers there keeps its strings.
    """
    names = set()
    for name in (name for name, kind in corpus.columns.items() if kind == before.get(name, kind) == "number"):
        if all(each & SAME_JSON for each in count_facts(corpus.facts[name])):
            names.add(name)
    if not names:
        return
    fresh = passages.with_name("numbers.safetensors")
    with writing_passages(fresh) as written:
        for text, id, metadata in zip(corpus.texts, corpus.ids, corpus.metadata, strict=True):
            row = json.loads(metadata)
            row |= {name: json.loads(row[name]) for name in names & row.keys()}
            written.append(PassageRow(text, id, compact_json(row)))
    fresh.replace(passages)


def describe_mixed(corpus: Corpus, types: Mapping[str, str]) -> dict[str, str]:
    """Return a warning for each column without a type, and for each column of strings that are mostly dates.

    It names the first row whose value differs from most of the others.
    """
    warnings = {}
    for name in sorted(name for name, kind in types.items() if kind in (NONE, "string")):
        ranked = _rank_kinds(corpus.facts[name])
        if len(ranked) > 1 and (types[name] == NONE or ranked[0].kind == "dates"):
            usual, other = ranked[:2]
            row = other.first_row
            found = f"row {row} (id {corpus.ids[row]}) has {reprlib.repr(_value(corpus, row, name))}"
            effect = "filters, sort and facets cannot use it"
            if types[name] != NONE:
                effect = "it is compared as text"
            usually = f"{name} has {usual.kind} in {usual.rows:,} of {sum(each.rows for each in ranked):,} rows"
            warnings[name] = f"{usually}, and {found}, so {effect}; correct that row"
    return warnings


class _KindOfValues(NamedTuple):
    """One kind of the values of a column, in words, with the number of rows that have it and the first of them."""

    kind: str
    rows: int
    first_row: int


def _rank_kinds(column: Array[np.uint16]) -> list[_KindOfValues]:
    """Return the kinds of the values of a column, the most frequent one first."""
    found: dict[str, _KindOfValues] = {}
    for facts, count in count_facts(column).items():
        kind, row = _describe_kind(facts), _first(column == facts)
        known = found.get(kind, _KindOfValues(kind, 0, row))
        found[kind] = _KindOfValues(kind, known.rows + count, min(row, known.first_row))
    return sorted(found.values(), key=lambda each: (-each.rows, each.first_row))


def _describe_kind(facts: int) -> str:
    kinds = own_types(facts)
    if "date" in kinds:
        return "dates"
    if kinds == {"numbers"}:
        return "lists of numbers"
    return next((f"{kind}s" for kind in sorted(kinds)), "other values")


@dataclass(frozen=True, slots=True)
class OlderColumns:
    """The columns of an older index, of which an update takes the values of the rows that stay."""

    types: Mapping[str, str]
    tensors: Mapping[str, AnyArray]
    rows: Positions  # for each row of the new index the row of the older one that it is, -1 for a new one


NO_COLUMNS: Mapping[str, AnyArray] = {}


@dataclass(slots=True)
class _Values:
    """The values of a column that are read from the metadata, row by row; equal values share their memory."""

    values: list[Stored] = field(default_factory=list)
    rows: "array[int]" = field(
        default_factory=lambda: array("I")
    )  # row of each value; a list can have several values, or none
    known: dict[Stored, Stored] = field(default_factory=dict)

    def add(self, row: int, values: Sequence[Stored]) -> None:
        """Add what `stored_values` returns for the next row that has a value."""
        for value in values:
            self.rows.append(row)
            self.values.append(self.known.setdefault(value, value))


def column_tensors(corpus: Corpus, types: Mapping[str, str], older: OlderColumns | None = None) -> dict[str, AnyArray]:
    """Return the tensors of a columns.safetensors, which semsearch/engine/metadata/columns.py describes.

    `choose_types` returned the types. The tensors are made of the metadata of the rows that the older index lacks.
    Those of a column that it lacks, or has with another type, are made of the metadata of all rows.
    """
    if older is None:
        older = OlderColumns({}, NO_COLUMNS, np.broadcast_to(-1, len(corpus.metadata)))
    is_new = older.rows < 0
    unknown = {name for name, kind in types.items() if older.types.get(name) != kind}
    is_read = is_new.copy()
    for name in unknown:
        is_read |= corpus.facts[name] != 0
    read = {name: _Values() for name in types}
    rows = np.flatnonzero(is_read)
    for row, metadata in zip(map(int, rows), strings_at(corpus.metadata, rows), strict=True):
        values = json.loads(metadata)
        names = read.keys() if is_new[row] else unknown
        for name in names & values.keys():
            stored = stored_values(types[name], values[name])
            assert stored is not None  # `choose_types` checked it
            read[name].add(row, stored)
    tensors: dict[str, AnyArray] = {}
    for name, kind in types.items():
        taken: dict[str, AnyArray] = {}
        if name not in unknown:
            taken = {part: older.tensors[f"{name}.{part}"] for part in PARTS if f"{name}.{part}" in older.tensors}
        parts = _tensors(kind, corpus.facts[name], read.pop(name), taken, older.rows)
        tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    return tensors


def _tensors(
    kind: str, facts: Array[np.uint16], read: _Values, taken: Mapping[str, AnyArray], older_rows: Positions
) -> dict[str, AnyArray]:
    """Return the tensors of a column, of the values that were read and those of an older column, if one is taken."""
    count, has_value = len(facts), facts != 0
    stay = older = np.empty(0, np.uint8)
    if taken:
        stay, older = _staying(kind, taken, older_rows, has_value)
    rows = np.concatenate([stay.astype(np.uint32), np.asarray(read.rows)])
    if kind in STRING_TYPES:
        tensors = _word_tensors(kind, taken, older, read, rows, count)
    else:
        dtype = DTYPES_OF_TYPES.get(kind) or numbers_dtype(count_facts(facts))
        assert dtype is not None  # `choose_types` checked it
        numbers = np.concatenate([older.astype(dtype), np.array(read.values, dtype)])
        tensors = _number_tensors(kind, numbers + 0, rows, count)  # -0.0 becomes 0.0, which equals it
    if not has_value.all():
        tensors["present"] = np.packbits(has_value)
    return tensors


def _staying(
    kind: str, taken: Mapping[str, AnyArray], older_rows: Positions, has_value: Mask
) -> tuple[AnyArray, AnyArray]:
    """Return the values of an older column that stay: the new row of each, and the number or the code of the string."""
    if kind in LIST_TYPES:
        new_rows = np.full(max(older_rows.max(initial=0), taken["rows"].max(initial=0)) + 1, -1)
        new_rows[older_rows[older_rows >= 0]] = np.flatnonzero(older_rows >= 0)
        rows = new_rows[taken["rows"]]
        values, rows = taken["codes"][rows >= 0], rows[rows >= 0]
    else:
        rows = np.flatnonzero(has_value & (older_rows >= 0))
        values = taken.get("codes", taken["values"])[older_rows[rows]]
    if kind not in STRING_TYPES and "codes" in taken:
        values = taken["values"][values]
    return rows, values


def _word_tensors(
    kind: str, taken: Mapping[str, AnyArray], older_codes: AnyArray, read: _Values, rows: AnyArray, count: int
) -> dict[str, AnyArray]:
    """Return the tensors of strings. Words of the older dictionary that no row has any more are left out."""
    content, lengths = np.empty(0, np.uint8), np.empty(0, np.intp)
    if taken:
        content, lengths = taken["values"], np.diff(taken["offsets"]).astype(np.intp)
    is_used = np.zeros(len(lengths), np.bool_)
    is_used[older_codes] = True
    if not is_used.all():
        content, lengths = content[np.repeat(is_used, lengths)], lengths[is_used]
    older = Strings(content, _offsets(lengths))
    places: list[int] = []  # place of each added word among the older words
    pieces: list[memoryview | bytes] = []
    codes: dict[Stored, int] = {}
    end = 0
    for word in sorted(word for word in read.known if isinstance(word, bytes)):
        place = bisect_left(older, word)
        codes[word] = place + len(places)
        if place == len(older) or older[place] != word:
            begin, end = end, int(older.offsets[place])
            pieces += [content.data[begin:end], word]
            places.append(place)
    if places:
        content = np.frombuffer(b"".join([*pieces, content.data[end:]]), np.uint8)
        lengths = np.insert(lengths, places, [len(word) for word in pieces[1::2]])
    code_dtype = _smallest_dtype(len(lengths))
    new_codes = np.zeros(len(is_used), code_dtype)  # new code of each older word
    added_before = np.cumsum(np.bincount(places, minlength=len(older)))[: len(older)]
    new_codes[is_used] = np.arange(len(older)) + added_before
    read_codes = np.fromiter(map(codes.__getitem__, read.values), code_dtype, len(read.values))
    all_codes = np.concatenate([new_codes[older_codes], read_codes])
    tensors: dict[str, AnyArray] = {"values": content, "offsets": _offsets(lengths)}
    return tensors | _coded(kind, all_codes, len(lengths), rows, count)


def _offsets(lengths: AnyArray) -> AnyArray:
    offsets = np.zeros(len(lengths) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _number_tensors(kind: str, numbers: AnyArray, rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the tensors of numbers: with a dictionary where that takes fewer bytes, and for lists."""
    distinct = np.unique(numbers)
    code_bytes = count * _smallest_dtype(len(distinct)).itemsize
    if kind not in LIST_TYPES and distinct.nbytes + code_bytes >= count * numbers.itemsize:
        return {"values": _spread(numbers, rows, count)}
    return {"values": distinct} | _coded(kind, np.searchsorted(distinct, numbers), len(distinct), rows, count)


def _coded(kind: str, codes: AnyArray, words: int, rows: AnyArray, count: int) -> dict[str, AnyArray]:
    codes = codes.astype(_smallest_dtype(words), copy=False)
    if kind in LIST_TYPES:
        order = np.argsort(rows, kind="stable")  # the values of a row stay in their order
        return {"codes": codes[order], "rows": rows[order]}
    return {"codes": _spread(codes, rows, count)}


def _spread(values: AnyArray, rows: AnyArray, count: int) -> AnyArray:
    spread = np.zeros(count, values.dtype)
    spread[rows] = values
    return spread


def _smallest_dtype(count: int) -> "np.dtype[np.generic]":
    return np.min_scalar_type(max(count - 1, 0))
