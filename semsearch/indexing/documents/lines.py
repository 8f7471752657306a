"""The lines of a file that have the text of a passage.

Lines count from 1 and end with a line feed, as editors, git and grep count them; so a carriage return alone ends none.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

from semsearch.engine.passages import Lines
from semsearch.indexing.documents.markup import EditedText


class SourceLines(Protocol):
    """The lines of a file, by the places of characters."""

    def of(self, start: int, end: int) -> Lines | None:
        """Return the lines of the characters start to end; None if they are in no line."""


class FileLines:
    """The lines of a text that is the file's own."""

    def __init__(self, text: str) -> None:
        self._ends = array("Q")  # the places of the line feeds
        place = text.find("\n")
        while place >= 0:
            self._ends.append(place)
            place = text.find("\n", place + 1)

    def of(self, start: int, end: int) -> Lines:
        """Return the lines of the characters start to end."""
        return Lines(bisect_left(self._ends, start) + 1, bisect_left(self._ends, end - 1) + 1)


class LinesWithInserts:
    """The lines of a text into which other files' texts were inserted. These have no line."""

    def __init__(self, edited: EditedText) -> None:
        self._edited = edited
        self._lines = FileLines(edited.original)

    def of(self, start: int, end: int) -> Lines | None:
        """Return the lines of the characters start to end; None if some of them are another file's."""
        if self._edited.has_edits(start, end):
            return None
        return self._lines.of(self._edited.origin(start), self._edited.origin_of_end(end))


class CellLines:
    """The lines of a notebook whose cells were joined to one text."""

    def __init__(self, text: str, places: Sequence[tuple[int, int]]) -> None:
        """Take the text, and for each of its lines the number of the cell and the line in it."""
        self._lines = FileLines(text)
        self._places = places

    def of(self, start: int, end: int) -> Lines:
        """Return the lines of the characters start to end, and the cells that have them."""
        first, last, *_ = self._lines.of(start, end)
        (first_cell, first), (last_cell, last) = self._places[first - 1], self._places[last - 1]
        return Lines(first, last, first_cell, last_cell)


class MarkedLines:
    """The lines of a text that a parser has changed, by marks in it."""

    def __init__(self, places: Sequence[int], lines: Sequence[int]) -> None:
        """Take the places of characters, ascending, at each of which a line begins, and these lines."""
        self._places, self._lines = places, lines

    def of(self, start: int, end: int) -> Lines | None:
        """Return the lines of the characters start to end; None if no mark is before their end."""
        stop = bisect_left(self._places, end)
        found = self._lines[max(bisect_right(self._places, start) - 1, 0) : stop]
        if not found:
            return None
        return Lines(min(found), max(found))
