"""The metadata that filters compare: typed columns, memory-mapped, each read only when a filter names it.

A column is stored in one of two ways. Either it has a dictionary: `values` ascend without repetitions, and `codes` has
the place of each row's value among them, so that filters compare small whole numbers. Or, where that takes fewer bytes,
`values` has the value of each row. Strings always have a dictionary: UTF-8 bytes with `offsets`.
A list has a code for each of its different values, and `rows` say which row each code belongs to.
`present` has a bit for each row, set where the row has a value; it is left out if all rows have one.

In an index of documents, the tensor `sections` (rows,) uint32 has for each row the first row of its section. Sections
with equal titles, headings and texts share the first row of the first of them.
"""

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from semsearch.engine.hits import Mask, Rows
from semsearch.engine.tensors import (
    DAMAGED,
    DTYPES,
    UNSIGNED,
    AnyArray,
    Strings,
    Tensors,
    TensorsError,
    map_tensors,
)

Stored = bytes | int | float

PARTS = ("values", "offsets", "codes", "rows", "present")  # a tensor's name is that of its column, a dot and a part
SECTIONS = "sections"  # the tensor of the sections; no column can have this name, because it has no dot
ID = "id"  # the column of the ids, unless the metadata have a column of this name
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORD_BYTES = 8  # bytes of a string that are compared as one number
COMPARED_AT_ONCE = 1 << 20  # bytes of ids that are compared with one at a time
FEW = 8  # up to this many values, one pass with == for each is faster than np.isin

EXPECTED_VALUES = {  # the values that a column of each type can be compared with, in words
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "date": "an ISO 8601 date or time, such as 2024-05-31 or 2024-05-31T12:00:00Z",
    "list": "a string",
    "numbers": "a number",
}
LIST_TYPES = ("list", "numbers")  # lists of strings, and lists of numbers
STRING_TYPES = ("string", "list")  # types of columns whose values are strings
Compare = Callable[[AnyArray, Any], Mask]


class Comparison(NamedTuple):
    """How an operator compares the values of a column, with a dictionary and without."""

    values: Compare  # each row's own value with a number
    is_rounded_up: bool  # whether a number that the dtype of the values lacks is rounded up, otherwise down
    codes: Compare  # each row's code with a place in the dictionary
    find: Callable[..., int]  # finds the place of a value in the dictionary


COMPARED = {
    "$gt": Comparison(operator.gt, False, operator.ge, bisect_right),
    "$gte": Comparison(operator.ge, True, operator.ge, bisect_left),
    "$lt": Comparison(operator.lt, True, operator.lt, bisect_left),
    "$lte": Comparison(operator.le, False, operator.lt, bisect_right),
}


def stored_value(kind: str, value: object) -> Stored:
    """Return a JSON value as a column of this type stores it: text as UTF-8, a date as microseconds since 1970 in UTC.

    A date without a time is its first moment. A time without a zone is in UTC. For a column of lists, value is one of a
    list's. Raises ValueError if the value is not of the type.
    """
    match value:
        case bool():
            if kind == "boolean":
                return int(value)
        case int() | float():
            if kind in ("number", "numbers") and (isinstance(value, int) or math.isfinite(value)):
                return value
        case str():
            if kind in ("string", "list"):
                return value.encode("utf-8", "surrogatepass")
            if kind == "date":
                moment = datetime.fromisoformat(value)
                if not moment.tzinfo:
                    moment = moment.replace(tzinfo=UTC)
                return (moment - EPOCH) // timedelta(microseconds=1)
    raise ValueError(f"{value!r} is not {EXPECTED_VALUES[kind]}")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, the corpus's number of rows, and the tensors that the module describes.

    A method that compares returns (rows,) bool. A row with a list matches if one of its values does.
    """

    kind: str
    count: int
    values: "AnyArray | Strings | PickedStrings"
    codes: AnyArray | None
    rows: AnyArray | None
    present: AnyArray | None

    def string(self, code: int) -> str:
        """Return a string by its code. Raises TensorsError if it is damaged."""
        assert isinstance(self.values, Strings)  # nothing shows the ids by their codes
        return self.values.text(code)

    def exists(self) -> Mask:
        """Return the rows that have a value."""
        if self.present is None:
            return np.ones(self.count, np.bool_)
        return np.unpackbits(self.present, count=self.count).view(np.bool_)

    def compare(self, comparison: str, value: Stored) -> Mask:
        """Return the rows whose value is above or below this one; comparison is $gt, $gte, $lt or $lte."""
        how = COMPARED[comparison]
        if self.codes is None:
            return self._rows_of(how.values(self._plain, _round(value, self._plain.dtype, how.is_rounded_up)))
        return self._rows_of(how.codes(self.codes, how.find(self.values, value, key=_exact)))

    def equals_any(self, values: Sequence[Stored]) -> Mask:
        """Return the rows whose value is one of these."""
        if self.codes is None:
            return self._rows_of(_is_any(self._plain, values))
        places = {(bisect_left(self.values, value, key=_exact), value) for value in values}
        known = [place for place, value in places if place < len(self.values) and _exact(self.values[place]) == value]
        return self._rows_of(_is_any(self.codes, known))

    def starts_with(self, start: bytes) -> Mask:
        """Return the rows whose string begins with this one. start is UTF-8."""
        assert self.codes is not None  # strings always have a dictionary
        first = bisect_left(self.values, start)
        end = bisect_left(self.values, start + b"\xff")  # above every character of UTF-8
        return self._rows_of((self.codes >= first) & (self.codes < end))

    @property
    def ordered(self) -> AnyArray:
        """Return the code of each row or, without a dictionary, its value: both ascend as the values do."""
        if self.codes is None:
            return self._plain
        return self.codes

    @property
    def _plain(self) -> AnyArray:
        assert isinstance(self.values, np.ndarray)  # strings always have a dictionary
        return self.values

    def _rows_of(self, matches: Mask) -> Mask:
        if self.rows is not None:
            mask = np.zeros(self.count, np.bool_)
            mask[self.rows[matches]] = True
            return mask
        if self.present is not None:
            return matches & self.exists()
        return matches


def _is_any(stored: AnyArray, wanted: Sequence[Stored]) -> Mask:
    held = [number for value in wanted if (number := _round(value, stored.dtype, is_up=False)) == value]
    if stored.dtype.kind != "f":
        limits = np.iinfo(stored.dtype)
        held = [number for number in held if limits.min <= number <= limits.max]
    if len(held) > FEW:
        return np.isin(stored, np.array(held, stored.dtype))
    mask = np.zeros(len(stored), np.bool_)
    for number in held:
        mask |= stored == number
    return mask


def _exact(value: Any) -> Stored:
    """Return an entry of a dictionary as Python's own type, which compares an int with a float exactly."""
    number: Stored = value
    if isinstance(value, np.generic):
        number = value.item()
    return number


def _round(value: Stored, dtype: "np.dtype[Any]", is_up: bool) -> int | float:
    """Return the nearest number at or below the value, or at or above it, that an array of this dtype can hold.

    An int can be beyond the range of an integer dtype, because NumPy compares it exactly. With floats, NumPy would
    round a large int before it compares.
    """
    assert not isinstance(value, bytes)  # strings always have a dictionary
    if dtype.kind != "f":
        if is_up:
            return math.ceil(value)
        return math.floor(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if is_up and number < value:
        return math.nextafter(number, math.inf)
    if not is_up and number > value:
        return math.nextafter(number, -math.inf)
    return number


class Columns:
    """The columns of a corpus by name; a column that is not used is not read."""

    def __init__(
        self, path: Path, kinds: Mapping[str, str], count: int, ids: "Callable[[], IdColumn] | None" = None
    ) -> None:
        """Map a columns.safetensors, with the type of each of its columns and the corpus's number of rows.

        A corpus without columns has no such file. `ids` returns the column of the ids.
        Raises TensorsError if the file is not complete.
        """
        self.kinds: Mapping[str, str] = kinds
        if ids is not None:
            self.kinds = {ID: "string"} | dict(kinds)
        self.count = count
        self._ids = ids
        self._path = path
        self._tensors = Tensors(path)
        if kinds:
            self._tensors = map_tensors(path)
        self._open: dict[str, Column] = {}

    @cached_property
    def sections(self) -> AnyArray | None:
        """The number of each row's section, (rows,) uint32; None if the texts are no passages of documents."""
        if SECTIONS not in self._tensors:
            return None
        sections = self._tensors.require(SECTIONS, [self.count], np.uint32)
        self._check_below(SECTIONS, sections, self.count)
        return sections

    def __getitem__(self, name: str) -> Column:
        """Return one column. Raises KeyError if there is none of this name, and TensorsError if it is damaged.

        The first use of a column reads its codes and the offsets of its strings, to check them.
        """
        if name not in self._open:
            self._open[name] = self._read(name, self.kinds[name])
        return self._open[name]

    def dtype(self, name: str) -> "np.dtype[Any]":
        """Return the dtype of the values of a column, without reading any. Raises TensorsError if there are none."""
        return self._tensors[f"{name}.values"].dtype

    def _read(self, name: str, kind: str) -> Column:
        tensors = self._tensors
        if name == ID and self._ids is not None and f"{ID}.values" not in tensors:
            return self._ids().sorted
        values, offsets, codes_name, rows_name, present_name = (f"{name}.{part}" for part in PARTS)
        present = rows = codes = None
        entries = self.count
        if present_name in tensors:
            present = tensors.require(present_name, [-(-self.count // 8)], np.uint8)
        if kind in LIST_TYPES:
            rows = tensors.require(rows_name, [None], np.uint32)
            self._check_below(rows_name, rows, self.count)
            entries = len(rows)
        if kind not in STRING_TYPES and codes_name not in tensors:
            return Column(kind, self.count, tensors.require(values, [entries], *DTYPES.values()), None, rows, present)
        codes = tensors.require(codes_name, [entries], *UNSIGNED)
        dictionary: AnyArray | Strings
        if kind in STRING_TYPES:
            dictionary = tensors.strings(values, offsets).check()
        else:
            dictionary = tensors.require(values, [None], *DTYPES.values())
        self._check_below(codes_name, codes, max(len(dictionary), 1))  # rows without a value have the code 0
        return Column(kind, self.count, dictionary, codes, rows, present)

    def _check_below(self, name: str, numbers: AnyArray, count: int) -> None:
        most = int(numbers.max(initial=0))
        if most >= count and len(numbers):
            raise TensorsError(f"{self._path}: the tensor {name} has {most}, expected less than {count}; {DAMAGED}")


class IdColumn:
    """The id of each row, by which rows are found."""

    def __init__(self, ids: Strings) -> None:
        """Take the ids. Raises TensorsError if their offsets are damaged; all of these are read."""
        self._ids = ids.check()

    def find(self, id: str, allowed: Mask | None = None) -> int | None:
        """Return the first row with an id among the allowed rows (rows,) bool, None for all; None if there is none."""
        wanted = id.encode("utf-8", "surrogatepass")
        rows = np.flatnonzero(np.diff(self._ids.offsets) == len(wanted))
        if allowed is not None:
            rows = rows[allowed[rows]]
        content, begins = self._ids.content, self._ids.offsets[rows].astype(np.intp)
        while len(rows) and wanted:  # from the end, because the last bytes of ids differ most
            width = min(len(wanted), max(WORD_BYTES, COMPARED_AT_ONCE // len(rows)))
            wanted, part = wanted[:-width], wanted[-width:]
            parts = np.ndarray(len(content) - width + 1, f"V{width}", content, strides=(1,))  # at each place
            is_same = parts[begins + len(wanted)] == np.frombuffer(part, parts.dtype)
            rows, begins = rows[is_same], begins[is_same]
        if not len(rows):
            return None
        return int(rows[0])

    @cached_property
    def sorted(self) -> Column:
        """The ids as a column of strings. The first use reads and sorts them: about a second for a million."""
        first, codes = sort_strings(self._ids)
        return Column("string", len(self._ids), PickedStrings(self._ids, first), codes, None, None)


class PickedStrings:
    """Some of the strings of a file, in another order."""

    def __init__(self, strings: Strings, places: Rows) -> None:
        """Take the places (n,) of the strings."""
        self._strings, self._places = strings, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> bytes:
        return self._strings[int(self._places[place])]


def sort_strings(strings: Strings) -> tuple[Rows, Rows]:
    """Return where each different string is first, in the order of bytes, and each string's place in this order.

    Both are (n,). The next eight bytes of each string are one number, and only strings that were equal up to these are
    compared further.
    """
    begins, ends = (strings.offsets[some].astype(np.intp) for some in (slice(-1), slice(1, None)))
    ranks = np.zeros(len(strings), np.intp)  # how many strings come before each one and those that are equal so far
    rows = np.arange(len(strings))
    while len(rows):
        left = np.minimum(ends[rows] - begins[rows], WORD_BYTES)
        words = np.zeros(len(rows), np.uint64)
        for place in range(WORD_BYTES):
            has_byte = left > place
            words <<= np.uint64(8)
            words[has_byte] |= strings.content[begins[rows[has_byte]] + place]
        order = np.lexsort((left, words, ranks[rows]))
        rows, left, words = rows[order], left[order], words[order]
        old = ranks[rows]
        is_other = (np.diff(old) != 0) | (np.diff(words) != 0) | (np.diff(left) != 0)
        first = np.flatnonzero(np.concatenate([[True], is_other]))
        sizes = np.diff(first, append=len(rows))
        ranks[rows] = old + np.repeat(first, sizes) - np.searchsorted(old, old)
        rows = rows[(np.repeat(sizes, sizes) > 1) & (left == WORD_BYTES)]
        begins[rows] += WORD_BYTES
    _, places, codes = np.unique(ranks, return_index=True, return_inverse=True)
    return places, codes
