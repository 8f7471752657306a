"""The values of one metadata column, collected row by row in few bytes and then made into its tensors.

function/engine/metadata/columns.py describes the tensors.
"""

import sys
from array import array
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from export.corpus.ids import EXACT_FLOATS
from function.engine.arrays import AnyArray
from function.engine.metadata.columns import Stored

REMEMBERED = 1 << 16  # different strings of a column whose numbers are cached: about 10 MB


class NumberRange:
    """Numbers of a column, and the dtype that holds all of them exactly."""

    def __init__(self) -> None:
        self.rounded: int | None = None  # the first whole number that float64 would round
        self._least = self._most = 0  # the range of the whole numbers, 0 included
        self._has_fraction = False

    def add(self, number: int | float) -> int | float:
        """Add a number that is neither NaN nor infinite; return it as an int if it is whole."""
        if isinstance(number, float) and not number.is_integer():
            self._has_fraction = True
            return number
        whole = int(number)
        self._least, self._most = min(self._least, whole), max(self._most, whole)
        if self.rounded is None and abs(whole) > EXACT_FLOATS:
            is_float = abs(whole) <= sys.float_info.max and float(whole) == whole
            self.rounded = None if is_float else whole
        return whole

    @property
    def typecode(self) -> str | None:
        """The `array` type code of the first that fits of int64, uint64 and float64; None if none does."""
        if not self._has_fraction and self._least >= -(2**63) and self._most < 2**63:
            return "q"
        if not self._has_fraction and self._least == 0 and self._most < 2**64:
            return "Q"
        return "d" if self.rounded is None else None


class Numbers:
    """A column of numbers, booleans or dates: 12 bytes for each row that has a value."""

    def __init__(self, kind: str) -> None:
        self._rows = array("I")
        self._range = NumberRange()
        self._values: array[int] | array[float] = array("B" if kind == "boolean" else "q")

    def add(self, row: int, values: Sequence[Stored]) -> None:
        """Add the one value of the next row that has one. Raises ValueError if no dtype holds it beside the others."""
        self._rows.append(row)
        for value in values:
            assert not isinstance(value, bytes)
            number = self._range.add(value)
            try:
                self._values.append(number)  # type: ignore[arg-type]
            except (TypeError, OverflowError):  # a fraction, or beyond the range of this dtype
                self._values = array(self._typecode(), self._values)
                self._values.append(number)

    def tensors(self, count: int) -> dict[str, AnyArray]:
        """Return the tensors of a column of `count` rows: with a dictionary where that takes fewer bytes.

        Raises ValueError if no dtype holds all values exactly.
        """
        self._typecode()
        rows, values = np.asarray(self._rows), np.asarray(self._values)
        each = _spread(values, rows, count)
        distinct, places = np.unique(values, return_inverse=True)
        codes = _spread(places.astype(_smallest_dtype(len(distinct))), rows, count)
        is_smaller = distinct.nbytes + codes.nbytes < each.nbytes
        return ({"values": distinct, "codes": codes} if is_smaller else {"values": each}) | _present(rows, count)

    def _typecode(self) -> str:
        if self._range.typecode is None:
            raise ValueError(f"no dtype holds {self._range.rounded} and all other numbers of the column exactly")
        return self._range.typecode


class Words:
    """A column of strings or of lists of strings: their UTF-8, and 8 to 12 bytes for each string.

    Only REMEMBERED different strings are cached, so that a column without repetitions needs no large dictionary.
    A string that occurs again later is stored again; `tensors` merges the equal ones.
    """

    def __init__(self, kind: str) -> None:
        self._rows = array("I")  # rows that have a value
        self._content, self._ends = bytearray(), array("Q", [0])  # the stored strings, joined, and their ends
        self._numbers: dict[Stored, int] = {}  # the number of each cached string
        self._occurrences = array("I")  # the number of each string
        self._rows_of_lists = array("I") if kind == "list" else None  # the row of each string

    def add(self, row: int, values: Sequence[Stored]) -> None:
        """Add the value of the next row that has one: UTF-8, in a list any number of them."""
        self._rows.append(row)
        for value in values:
            self._occurrences.append(self._numbers[value] if value in self._numbers else self._store(value))
            if self._rows_of_lists is not None:
                self._rows_of_lists.append(row)

    def _store(self, word: Stored) -> int:
        """Store a string, and return its number."""
        assert isinstance(word, bytes)
        if len(self._numbers) >= REMEMBERED:
            self._numbers.clear()
        number = self._numbers[word] = len(self._ends) - 1
        self._content += word
        self._ends.append(len(self._content))
        return number

    def tensors(self, count: int) -> dict[str, AnyArray]:
        """Return the tensors of a column of `count` rows. Nothing can be added afterwards."""
        words, places = self._sort()
        codes = places.astype(_smallest_dtype(len(words)))[np.asarray(self._occurrences)]
        rows = np.asarray(self._rows)
        tensors: dict[str, AnyArray] = {
            "values": np.frombuffer(b"".join(words), np.uint8),
            "offsets": np.cumsum([0, *map(len, words)], dtype=np.uint64),
        }
        if self._rows_of_lists is None:
            tensors["codes"] = _spread(codes, rows, count)
        else:
            tensors |= {"codes": codes, "rows": np.asarray(self._rows_of_lists)}
        return tensors | _present(rows, count)

    def _sort(self) -> tuple[list[bytes], AnyArray]:
        """Return the different strings in ascending order, and for the number of each stored string its place there."""
        stored = [bytes(self._content[begin:end]) for begin, end in pairwise(self._ends)]
        del self._content, self._numbers
        places, words = np.empty(len(stored), np.uint32), list[bytes]()
        for number in sorted(range(len(stored)), key=stored.__getitem__):
            if not words or words[-1] != stored[number]:
                words.append(stored[number])
            places[number] = len(words) - 1
        return words, places


def _present(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return a bit for each row, whether it has a value; no tensor if all rows have one."""
    if len(rows) == count:
        return {}
    return {"present": np.packbits(_spread(np.ones(len(rows), np.uint8), rows, count))}


def _spread(values: AnyArray, rows: AnyArray, count: int) -> AnyArray:
    """Return an array of `count` zeros with the values at their rows."""
    spread = np.zeros(count, values.dtype)
    spread[rows] = values
    return spread


def _smallest_dtype(count: int) -> "np.dtype[np.generic]":
    """Return the smallest unsigned dtype with at least this number of different values."""
    return np.min_scalar_type(max(count - 1, 0))
