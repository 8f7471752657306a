"""A text with markup in three forms: as its file has it, as the model reads it, and as plain text.

Places count characters of the file. The parser reads the file's text after edits, so its places are translated.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

BLANKS = re.compile(" {2,}")


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The characters start to end of a text become another text, by default none."""

    start: int
    end: int
    text: str = ""


class EditedText:
    """A text after edits. It knows where its characters are in the original."""

    def __init__(self, original: str, edits: Iterable[Edit]) -> None:
        """Make the edits. Of those that overlap, the first one is made."""
        self.original = original
        pieces: list[str] = []
        self._origins, self._starts = [0], [0]  # where each unchanged run begins, in the original and in the result
        self._edits: list[int] = []  # where the text of each edit begins in the result; the next run begins at its end
        end = length = 0
        for edit in sorted(edits):
            if edit.start < end:
                continue
            pieces += [original[end : edit.start], edit.text]
            self._edits.append(length + edit.start - end)
            length += edit.start - end + len(edit.text)
            end = edit.end
            self._origins.append(end)
            self._starts.append(length)
        pieces.append(original[end:])
        self.text: str = "".join(pieces)

    def origin(self, place: int) -> int:
        """Return the place in the original of a character of the result."""
        run = bisect_right(self._starts, place) - 1
        return self._origins[run] + place - self._starts[run]

    def origin_of_end(self, place: int) -> int:
        """Return the place in the original where a range of the result ends."""
        if place == 0:
            return 0
        return self.origin(place - 1) + 1

    def origins(self, start: int, end: int) -> tuple[int, int]:
        """Return where a range of the result begins and ends in the original; the text of an edit is in all of it."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        begin, stop = self.origin(start), self.origin_of_end(end)
        if first < len(self._edits) and start >= self._edits[first]:
            begin = self.origin(self._edits[first])
        if last < len(self._edits) and end > self._edits[last]:
            stop = self._origins[last + 1]
        return begin, stop

    def has_edits(self, start: int, end: int) -> bool:
        """Return whether an edit is in the characters start to end of the result, or between two of them."""
        first = bisect_right(self._starts, start) - 1
        return first < len(self._edits) and self._edits[first] < end

    def place(self, origin: int) -> int:
        """Return the place in the result of a character of the original, or of the first one kept after it."""
        run = bisect_right(self._origins, origin) - 1
        place = self._starts[run] + origin - self._origins[run]
        if run + 1 < len(self._starts):
            return min(place, self._starts[run + 1])
        return place


@dataclass(frozen=True, slots=True)
class PlainPiece:
    """The plain text of the characters start to end of an edited text."""

    start: int
    end: int
    text: str
    keeps_blanks: bool = False  # True for code and for gaps between texts: repeated blanks stay


class Markup:
    """The markup of a text: what is nobody's text, and the plain text of the rest."""

    def __init__(self, edited: EditedText, pieces: Sequence[PlainPiece], hidden: Iterable[Edit]) -> None:
        """Take the pieces of the edited text in order, and the ranges of the original that nobody reads.

        The text of such a range is not empty if it separates the words around it.
        """
        self._edited = edited
        self._pieces = pieces
        self._starts = [piece.start for piece in pieces]
        self._hidden = sorted(hidden)
        self._hidden_ends = [edit.end for edit in self._hidden]

    def read_by_model(self, start: int, end: int) -> str:
        """Return the characters start to end of the file without its comments and tags.

        A blank takes the place of tags that separate words, unless there is white space beside them.
        """
        read: list[str] = []
        place, is_separated = start, False
        first = bisect_right(self._hidden_ends, start)
        for edit in [*self._hidden[first:], Edit(end, end)]:
            shown = self._edited.original[place : min(edit.start, end)]
            if shown:
                if is_separated and read and not (read[-1][-1].isspace() or shown[0].isspace()):
                    read.append(" ")
                read.append(shown)
                is_separated = False
            if edit.start >= end:
                break
            place = max(place, edit.end)
            is_separated = is_separated or bool(edit.text)
        return "".join(read).strip()

    def plain(self, start: int, end: int) -> str:
        """Return the plain text of the characters start to end of the file."""
        begin, stop = self._edited.place(start), self._edited.place(end)
        found: list[str] = []
        for piece in self._pieces_in(begin, stop):
            text = _clip(piece, begin, stop)
            if not piece.keeps_blanks:
                text = BLANKS.sub(" ", text)
                if found and found[-1][-1].isspace():
                    text = text.lstrip(" ")
            if text:
                found.append(text)
        return "".join(found).strip()

    def words(self, start: int, end: int) -> tuple[int, int]:
        """Return where the first word of the characters start to end of the file begins, and where the last one ends.

        They are in the file. Without words, they are `start` and `end`.
        """
        begin, stop = self._edited.place(start), self._edited.place(end)
        found: list[tuple[int, int]] = []
        for piece in self._pieces_in(begin, stop):
            first, last = max(piece.start, begin), min(piece.end, stop)
            if first < last and piece.text.strip():
                found.append((self._edited.origin(first), self._edited.origin_of_end(last)))
        if not found:
            return start, end
        (first, _), (_, last), text = found[0], found[-1], self._edited.original
        content = text[first:last]
        return last - len(content.lstrip()), first + len(content.rstrip())

    def _pieces_in(self, begin: int, stop: int) -> Iterator[PlainPiece]:
        """Yield the pieces with some of the characters begin to stop of the edited text."""
        place = bisect_left(self._starts, begin)
        if place and self._pieces[place - 1].end > begin:  # a piece that is divided
            place -= 1
        while place < len(self._pieces) and self._pieces[place].start < stop:
            yield self._pieces[place]
            place += 1


def _clip(piece: PlainPiece, begin: int, stop: int) -> str:
    """Return the text of a piece from `begin` to `stop`; a text of another length belongs to its first character."""
    if piece.end - piece.start == len(piece.text):
        return piece.text[max(begin - piece.start, 0) : stop - piece.start]
    return piece.text if piece.start >= begin else ""
