"""The metadata that filters compare: typed columns, memory-mapped, each read only when a filter names it.

A column is stored in one of two ways. Either it has a dictionary: `values` ascend without repetitions, and `codes` has
the place of each row's value among them, so that filters compare small whole numbers. Or, where that takes fewer bytes,
`values` has the value of each row. Strings always have a dictionary: UTF-8 bytes with `offsets`.
A list has a code for each of its values, and `rows` say which row each code belongs to.
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from semsearch.engine.hits import Mask
from semsearch.engine.tensors import AnyArray, Array, Strings, map_tensors

Stored = bytes | int | float

PARTS = ("values", "offsets", "codes", "rows", "present")  # a tensor's name is that of its column, a dot and a part
SECTIONS = "sections"  # the tensor of the sections; no column can have this name, because it has no dot
ID = "id"  # the column of the ids, unless the metadata have a column of this name
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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

    Each method returns (rows,) bool. A row with a list matches if one of its values does.
    """

    kind: str
    count: int
    values: AnyArray | Strings
    codes: AnyArray | None
    rows: AnyArray | None
    present: AnyArray | None

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
        self._tensors: dict[str, AnyArray] = {}
        if kinds:
            self._tensors = map_tensors(path)

    @property
    def sections(self) -> AnyArray | None:
        """The number of each row's section, (rows,) uint32; None if the texts are no passages of documents."""
        return self._tensors.get(SECTIONS)

    def __getitem__(self, name: str) -> "Column | IdColumn":
        """Return one column. Raises KeyError if there is none of this name."""
        kind = self.kinds[name]
        if name == ID and self._ids is not None and f"{ID}.values" not in self._tensors:
            return self._ids()
        values, offsets, codes, rows, present = (self._tensors.get(f"{name}.{part}") for part in PARTS)
        assert values is not None  # every column of the manifest has values
        if offsets is not None:
            return Column(kind, self.count, Strings(values, offsets), codes, rows, present)
        return Column(kind, self.count, values, codes, rows, present)


class IdColumn:
    """The id of each row, a string. The methods of the same names as those of `Column` return (rows,) bool too."""

    kind = "string"

    def __init__(self, ids: Strings) -> None:
        self._ids = ids
        self.count: int = len(ids)

    def find(self, id: str, allowed: Mask | None = None) -> int | None:
        """Return the first row with an id among the allowed rows (rows,) bool, None for all; None if there is none."""
        wanted = id.encode("utf-8", "surrogatepass")
        rows = self._begin_with(np.flatnonzero(np.diff(self._ids.offsets) == len(wanted)), wanted)
        if allowed is not None:
            rows = rows[allowed[rows]]
        if not len(rows):
            return None
        return int(rows[0])

    def exists(self) -> Mask:
        """Return all rows."""
        return np.ones(self.count, np.bool_)

    def equals_any(self, values: Sequence[Stored]) -> Mask:
        """Return the rows whose id is one of these."""
        wanted = set(values)
        lengths = np.diff(self._ids.offsets)
        rows = np.flatnonzero(np.isin(lengths, [len(value) for value in wanted if isinstance(value, bytes)]))
        return self._mask([row for row in rows.tolist() if self._ids[row] in wanted])

    def starts_with(self, start: bytes) -> Mask:
        """Return the rows whose id begins with this; start is UTF-8."""
        rows = np.flatnonzero(np.diff(self._ids.offsets) >= len(start))
        return self._mask(self._begin_with(rows, start))

    def compare(self, comparison: str, value: Stored) -> Mask:
        """Return the rows whose id is above or below this one in the order of bytes; comparison is as in `Column`."""
        compare = COMPARED[comparison].values
        return self._mask([row for row in range(self.count) if compare(self._ids[row], value)])  # type: ignore[arg-type] # bytes compare as numbers do

    def _begin_with(self, rows: Array[np.intp], start: bytes) -> Array[np.intp]:
        """Return those of these rows whose ids begin with these bytes. No id of the rows is shorter than start."""
        begins = self._ids.offsets[rows].astype(np.int64)
        for place in reversed(range(len(start))):  # the last bytes of ids differ most
            same = self._ids.content[begins + place] == start[place]
            rows, begins = rows[same], begins[same]
        return rows

    def _mask(self, rows: Sequence[int] | Array[np.intp]) -> Mask:
        mask = np.zeros(self.count, np.bool_)
        mask[rows] = True
        return mask
