"""The ids of passages: numbers as text, and row numbers in place of blank ids."""

from array import array
from collections.abc import Callable
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
        self._files: list[tuple[Path, Callable[[int], str]]] = []
        # numbers, their places in their files, and the numbers of these files
        self._blank = array("Q"), array("Q"), array("Q")  # rows with a blank id
        self._taken = array("Q"), array("Q"), array("Q")  # ids that could be the number of a row

    def begin(self, path: Path, describe: Callable[[int], str]) -> None:
        """Start the next file; `describe` turns a passage's place in it into words for messages, such as "line 7"."""
        self._files.append((path, describe))

    def replace_blank(self, name: str, row: int, place: int) -> str:
        """Return the id of a row, or its row number if the id is blank; place is the row's place in its file."""
        if not name.strip():
            self._remember(self._blank, row, place)
            return str(row)
        if name.isascii() and name.isdigit() and len(name) <= MOST_DIGITS and (name[0] != "0" or name == "0"):
            self._remember(self._taken, int(name), place)
        return name

    def _remember(self, kind: tuple["array[int]", ...], number: int, place: int) -> None:
        for values, value in zip(kind, (number, place, len(self._files) - 1), strict=True):
            values.append(value)

    def count_blank(self) -> int:
        """Return the number of blank ids in the file that was started last."""
        return self._blank[2].count(len(self._files) - 1)

    def refuse_collisions(self) -> None:
        """Raise CorpusError if a row number that replaces a blank id is the id of another passage, in any file.

        The id would name two texts.
        """
        collisions = np.flatnonzero(np.isin(np.array(self._taken[0]), np.array(self._blank[0])))
        if not len(collisions):
            return
        number, place, file = (int(values[collisions[0]]) for values in self._taken)
        _, blank_place, blank_file = (values[self._blank[0].index(number)] for values in self._blank)
        other, describe_other = self._files[file]
        path, describe = self._files[blank_file]
        holder = describe_other(place) if file == blank_file else f"{other}, {describe_other(place)}"
        found = f"no id, and the row number {number} that replaces it is the id of {holder}"
        remedy = "write an id in each row, or name another column with --id-column"
        raise corpus_error(path, describe(blank_place), found, "a different id for each", remedy)
