"""The values of one metadata column, collected row by row in few bytes and then made into its tensors.

function/engine/columns.py describes the tensors.
"""

from array import array
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from function.engine.arrays import AnyArray
from function.engine.columns import Stored

REMEMBERED = 1 << 16  # different strings of a column: some 10 MB


class Numbers:
    """A column of numbers, booleans or dates: 12 bytes for each row that has a value."""

    def __init__(self, kind: str) -> None:
        self._rows = array("I")
        self._values: array[int] | array[float] = array("B" if kind == "boolean" else "q")

    def add(self, row: int, values: Sequence[Stored]) -> None:
        """Add the one value of the next row that has one."""
        self._rows.append(row)
        for value in values:
            try:
                self._values.append(value)  # type: ignore[arg-type]
            except (TypeError, OverflowError):  # a fraction, or too large for int64
                self._values = array("d", self._values)
                self._values.append(value)  # type: ignore[arg-type]

    def tensors(self, count: int) -> dict[str, AnyArray]:
        """Return the tensors of a column of `count` rows: with a dictionary where that takes fewer bytes."""
        rows, values = np.asarray(self._rows), np.asarray(self._values)
        each = _spread(values, rows, count)
        distinct, places = np.unique(values, return_inverse=True)
        codes = _spread(places.astype(_smallest_dtype(len(distinct))), rows, count)
        is_smaller = distinct.nbytes + codes.nbytes < each.nbytes
        return ({"values": distinct, "codes": codes} if is_smaller else {"values": each}) | _present(rows, count)


class Words:
    """A column of strings or of lists of strings: their UTF-8, and 8 to 12 bytes for each string.

    Only REMEMBERED different strings are looked up, so that a column without repetitions needs no large dictionary.
    A string that occurs again later is stored again; `tensors` brings the equal ones together.
    """

    def __init__(self, kind: str) -> None:
        self._rows = array("I")  # that have a value
        self._content, self._ends = bytearray(), array("Q", [0])  # of the stored strings
        self._numbers: dict[Stored, int] = {}  # of those that are looked up
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
        """Return the different strings in ascending order, and the place there of each stored string, by its number."""
        stored = [bytes(self._content[begin:end]) for begin, end in pairwise(self._ends)]
        del self._content, self._numbers
        places, words = np.empty(len(stored), np.uint32), list[bytes]()
        for number in sorted(range(len(stored)), key=stored.__getitem__):
            if not words or words[-1] != stored[number]:
                words.append(stored[number])
            places[number] = len(words) - 1
        return words, places


def _present(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the bits of the rows that have a value, if others have none."""
    if len(rows) == count:
        return {}
    return {"present": np.packbits(_spread(np.ones(len(rows), np.uint8), rows, count))}


def _spread(values: AnyArray, rows: AnyArray, count: int) -> AnyArray:
    """Return an array of `count` zeros with the values at their rows."""
    spread = np.zeros(count, values.dtype)
    spread[rows] = values
    return spread


def _smallest_dtype(count: int) -> "np.dtype[np.generic]":
    """Return the smallest unsigned dtype that tells so many values apart."""
    return np.min_scalar_type(max(count - 1, 0))
