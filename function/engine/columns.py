"""The metadata that filters compare: typed columns, memory-mapped, each read only when a filter names it.

A column is stored in one of two ways. Either it has a dictionary, `values` in ascending order without repetitions, and
`codes`, the place of each row's value in it: comparing rows is then comparing small whole numbers. Or, where that takes
fewer bytes, `values` are those of the rows themselves. Strings always have a dictionary: UTF-8 bytes with `offsets`.
A list has a code for each of its strings, and `rows` say which row each code belongs to.
`present` has a bit for each row, set where the row has a value; it is left out if all rows have one.
"""

import operator
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from function.engine.arrays import AnyArray, Array
from function.engine.tensors import TensorsError, map_tensors

Mask = Array[np.bool_]  # (rows,), true for the rows that are kept
Stored = bytes | int | float

PARTS = ("values", "offsets", "codes", "rows", "present")  # of a column; a tensor's name is the column's, a dot, a part
DTYPES = {  # of the values
    "string": ("uint8",),
    "number": ("int64", "float64"),
    "boolean": ("uint8",),
    "date": ("int64",),
    "list": ("uint8",),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FEW = 8  # equal values are looked for one by one up to here, which takes a fraction of looking each row up

EXPECTED = {  # of a value that is compared with a column, by the column's type
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "date": "an ISO 8601 date or time, such as 2024-05-31 or 2024-05-31T12:00:00Z",
    "list": "a string",
}
# How values are compared where each row has its own, and how codes are compared with a place in the dictionary.
Compare = Callable[[AnyArray, Any], Mask]
COMPARED: dict[str, tuple[Compare, Compare, Callable[[Any, Any], int]]] = {
    "$gt": (operator.gt, operator.ge, bisect_right),
    "$gte": (operator.ge, operator.ge, bisect_left),
    "$lt": (operator.lt, operator.lt, bisect_left),
    "$lte": (operator.le, operator.lt, bisect_right),
}


def stored_value(kind: str, value: object) -> Stored:
    """Return a JSON value as a column of this type stores it: text as UTF-8, a date as microseconds since 1970 in UTC.

    A date without a time is its first moment, a time without a zone is in UTC. Of a list, value is one of its strings.
    Raises ValueError if the value is not of the type.
    """
    match value:
        case bool():
            if kind == "boolean":
                return int(value)
        case int() | float():
            if kind == "number" and abs(value) <= sys.float_info.max:  # neither infinite nor NaN
                return value
        case str():
            if kind in ("string", "list"):
                return value.encode("utf-8", "surrogatepass")
            if kind == "date":
                moment = datetime.fromisoformat(value)
                aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                return (aware - EPOCH) // timedelta(microseconds=1)
    raise ValueError(f"{value!r} is not {EXPECTED[kind]}")


class _Words:
    """The strings of a dictionary, in ascending order of their bytes; reading one reads no other."""

    def __init__(self, content: AnyArray, offsets: AnyArray) -> None:
        self._content = content
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> bytes:
        begin, end = self._offsets[place : place + 2]
        return bytes(self._content[int(begin) : int(end)])


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, the corpus's number of rows, and the tensors that the module describes."""

    kind: str
    count: int
    values: AnyArray | _Words
    codes: AnyArray | None
    rows: AnyArray | None
    present: AnyArray | None

    def exists(self) -> Mask:
        """Return the rows that have a value."""
        if self.present is None:
            return np.ones(self.count, np.bool_)
        return np.unpackbits(self.present, count=self.count).view(np.bool_)

    def compare(self, comparison: str, value: Stored) -> Mask:
        """Return the rows whose value is $gt, $gte, $lt or $lte this one; of a list, one of its strings must be."""
        compare_values, compare_codes, find = COMPARED[comparison]
        value = self._as_stored(value)
        if self.codes is None:
            return self._rows_of(compare_values(self._plain, value))
        return self._rows_of(compare_codes(self.codes, find(self.values, value)))

    def equals_any(self, values: Sequence[Stored]) -> Mask:
        """Return the rows whose value is one of these; of a list, one of its strings must be."""
        values = [self._as_stored(value) for value in values]
        if self.codes is None:
            return self._rows_of(_is_any(self._plain, values))
        places = {(bisect_left(self.values, value), value) for value in values}
        known = [place for place, value in places if place < len(self.values) and self.values[place] == value]
        return self._rows_of(_is_any(self.codes, known))

    def starts_with(self, start: bytes) -> Mask:
        """Return the rows whose string begins with this one; of a list, one of its strings must. start is UTF-8."""
        assert self.codes is not None  # strings always have a dictionary
        first = bisect_left(self.values, start)
        end = bisect_left(self.values, start + b"\xff")  # above every character of UTF-8
        return self._rows_of((self.codes >= first) & (self.codes < end))

    @property
    def _plain(self) -> AnyArray:
        assert isinstance(self.values, np.ndarray)  # strings always have a dictionary
        return self.values

    def _as_stored(self, value: Stored) -> Stored:
        """Return a number as the column has them: NumPy would compare large whole numbers with floats inexactly."""
        if not isinstance(self.values, np.ndarray) or isinstance(value, bytes):
            return value
        if self.values.dtype == np.float64:
            return float(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def _rows_of(self, matches: Mask) -> Mask:
        """Return the rows of the codes or values that match."""
        if self.rows is not None:
            mask = np.zeros(self.count, np.bool_)
            mask[self.rows[matches]] = True
            return mask
        return matches if self.present is None else matches & self.exists()


def _is_any(stored: AnyArray, wanted: Sequence[Stored]) -> Mask:
    """Return where an array holds one of these values."""
    if len(wanted) > FEW:
        whole = [value for value in wanted if isinstance(value, int) and -(2**63) <= value < 2**63]
        return np.isin(stored, np.array(wanted if stored.dtype.kind == "f" else whole, stored.dtype))
    mask = np.zeros(len(stored), np.bool_)
    for value in wanted:
        mask |= stored == value
    return mask


class Columns:
    """The columns of a corpus by name. None is read before it is asked for."""

    def __init__(self, path: Path, kinds: Mapping[str, str], count: int) -> None:
        """Map a columns.safetensors, with the type of each of its columns and the corpus's number of rows.

        Without columns there is no such file. Raises TensorsError if it is not whole.
        """
        self.kinds = kinds
        self.count = count
        self._path = path
        self._tensors = map_tensors(path) if kinds else {}

    def __getitem__(self, name: str) -> Column:
        """Return one column. Raises KeyError if there is none, TensorsError if the file holds something else."""
        kind = self.kinds[name]
        values, offsets, codes, rows, present = parts = [self._tensors.get(f"{name}.{part}") for part in PARTS]
        if values is None or not _belong_together(kind, self.count, values, offsets, codes, rows, present):
            found = {
                part: (tensor.dtype.name, *tensor.shape)
                for part, tensor in zip(PARTS, parts, strict=True)
                if tensor is not None
            }
            raise TensorsError(
                f"{self._path}: the column {name!r} holds {found}, expected the parts of {self.count} rows of the type "
                f"{kind}; run `python -m export` again"
            )
        return Column(kind, self.count, values if offsets is None else _Words(values, offsets), codes, rows, present)


def _belong_together(
    kind: str,
    count: int,
    values: AnyArray,
    offsets: AnyArray | None,
    codes: AnyArray | None,
    rows: AnyArray | None,
    present: AnyArray | None,
) -> bool:
    """Return whether these are the tensors of a column of this type, and as long as they have to be."""
    entries = values if codes is None else codes  # one for each row; in a list, one for each string
    return (
        all(tensor.ndim == 1 for tensor in (values, offsets, codes, rows, present) if tensor is not None)
        and values.dtype.name in DTYPES[kind]
        and (codes is None or codes.dtype.kind == "u")
        and (offsets is not None) == (kind in ("string", "list"))
        and (offsets is None or (codes is not None and len(offsets) > 0 and int(offsets[-1]) == len(values)))
        and (rows is not None) == (kind == "list")
        and len(entries) == (count if rows is None else len(rows))
        and (present is None or len(present) == -(-count // 8))
    )
