"""The ids of passages: numbers as text, and row numbers in place of blank ids."""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.corpus.corpus import corpus_error

EXACT_FLOATS = 2**53  # up to here a float holds every whole number (IEEE 754, 53 bits of significand)
MOST_DIGITS = 18  # digits of a row number; more might not fit into 64 bits


def id_of_number(number: float) -> str:
    """Return a number, int or float, as an id. Whole numbers get no decimal point: 1, 1.0 and "1" are the same id."""
    if isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS:
        return str(int(number))
    return str(number)


class Ids:
    """The ids of a corpus's passages, taken one after the other; a blank id becomes the number of its row."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._blank, self._blank_places = array("Q"), array("Q")  # rows with a blank id, and where they are
        self._numbers, self._number_places = array("Q"), array("Q")  # ids that could be the number of a row

    def begin(self, path: Path, describe: Callable[[int], str]) -> None:
        """Start the next file; `describe` turns a passage's place in it into words for messages, such as "line 7"."""
        self._files.append(_File(path, describe, len(self._blank), len(self._numbers)))

    def replace_blank(self, name: str, row: int, place: int) -> str:
        """Return the id of a row, or else its row number; place is where the row is in its file, for messages."""
        if not name.strip():
            self._blank.append(row)
            self._blank_places.append(place)
            return str(row)
        if name.isascii() and name.isdigit() and len(name) <= MOST_DIGITS and (name[0] != "0" or name == "0"):
            self._numbers.append(int(name))
            self._number_places.append(place)
        return name

    def count_blank(self) -> int:
        """Return how many ids of the file that was started last were blank."""
        return len(self._blank) - self._files[-1].blank_before

    def refuse_collisions(self) -> None:
        """Raise CorpusError if a row number that replaces a blank id is the id of another passage, in whatever file.

        The id would name two texts.
        """
        taken = np.flatnonzero(np.isin(np.array(self._numbers), np.array(self._blank)))
        if not len(taken):
            return
        number = self._numbers[taken[0]]
        blank = self._blank.index(number)
        file = self._files[bisect_right(self._files, blank, key=lambda file: file.blank_before) - 1]
        other = self._files[bisect_right(self._files, taken[0], key=lambda file: file.numbers_before) - 1]
        place = other.describe(self._number_places[taken[0]])
        if other is not file:
            place = f"{other.path}, {place}"
        found = f"no id, and the row number {number} that replaces it is the id of {place}"
        remedy = "write an id in each row, or name another column with --id-column"
        raise corpus_error(
            file.path, file.describe(self._blank_places[blank]), found, "a different id for each", remedy
        )


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and how many blank ids and how many numbers the files before it have."""

    path: Path
    describe: Callable[[int], str]
    blank_before: int
    numbers_before: int
