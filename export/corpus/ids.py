"""The ids of passages: numbers as text, and row numbers in place of blank ids."""

from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np

from export.corpus.corpus import corpus_error

EXACT_FLOATS = 2**53  # up to here a float holds every whole number (IEEE 754, 53 bits of significand)
MOST_DIGITS = 18  # of a row number; more would not fit into 64 bits


def id_of_number(number: float) -> str:
    """Return a number, int or float, as an id. Whole numbers get no decimal point: 1, 1.0 and "1" are the same id."""
    if isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS:
        return str(int(number))
    return str(number)


class Ids:
    """The ids of a file's passages, taken one after the other; a blank id becomes the number of its row."""

    def __init__(self, path: Path, describe: Callable[[int], str]) -> None:
        """Take the file for messages, and a function that turns a passage's place into words, such as "line 7"."""
        self._path = path
        self._describe = describe
        self._blank, self._blank_places = array("Q"), array("Q")  # rows with a blank id, and where they are
        self._numbers, self._number_places = array("Q"), array("Q")  # ids that could be the number of a row

    def replace_blank(self, name: str, row: int, place: int) -> str:
        """Return the id of a row, or else its row number; place is where the row is, for messages."""
        if not name.strip():
            self._blank.append(row)
            self._blank_places.append(place)
            return str(row)
        if name.isascii() and name.isdigit() and len(name) <= MOST_DIGITS and (name[0] != "0" or name == "0"):
            self._numbers.append(int(name))
            self._number_places.append(place)
        return name

    def count_blank(self) -> int:
        """Return how many ids were blank.

        Raises CorpusError if the row number of one is the id of another passage, because the id would name two texts.
        """
        taken = np.flatnonzero(np.isin(np.array(self._numbers), np.array(self._blank)))
        if len(taken):
            number = self._numbers[taken[0]]
            other = self._describe(self._number_places[taken[0]])
            found = f"a blank id, and the row number {number} that replaces it is the id of {other}"
            remedy = "write an id where it is blank, or name another column with --id-column"
            place = self._describe(self._blank_places[self._blank.index(number)])
            raise corpus_error(self._path, place, found, "a different id for each", remedy)
        return len(self._blank)
