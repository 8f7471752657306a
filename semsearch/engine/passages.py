"""The texts, ids and metadata of the corpus as bytes with offsets: reading one passage reads no other.

Documents with markup have their sources too. A search reads one only if it is asked for. Documents in some formats also
have the lines of their files.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from semsearch.engine.tensors import DAMAGED, AnyArray, Strings, TensorsError, map_tensors

PASSAGE_COLUMNS = ("texts", "ids", "metadata")
SOURCE_TEXTS = "sources"  # the column of the texts with their markup; "" for a text without any
SOURCE_LINES = "lines"  # the tensor of the lines, (rows, 4) uint32, with the fields of Lines


class Lines(NamedTuple):
    """The first and the last line of its file that have a text, from 1.

    In a notebook, the lines are those of two cells, which have numbers too. They can be the same cell.
    """

    first: int
    last: int
    first_cell: int = 0  # 0 if the file is no notebook
    last_cell: int = 0


NO_LINES = Lines(0, 0)  # the lines of a text whose format has none


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of the corpus: its id, its text and its other columns."""

    id: str
    text: str
    metadata: dict[str, Any]


class PassageColumns(NamedTuple):
    """Some rows of the corpus, column by column."""

    rows: list[int]
    ids: list[str]
    texts: list[str]
    metadata: list[dict[str, Any]]


class PassageReader(Protocol):
    """Reads parts of passages by their rows: what the hits of a search are shown from."""

    def id(self, row: int) -> str:
        """Return the id of one row."""

    def text(self, row: int) -> str:
        """Return the text of one row."""

    def source(self, row: int) -> str:
        """Return the text of one row with its markup, as the model reads it."""

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""

    def lines(self, row: int) -> Lines | None:
        """Return the lines of its file that have one row; None if they are not known."""


class Passages:
    """All rows of the corpus, memory-mapped; `passages[row]` reads one."""

    def __init__(self, path: Path) -> None:
        """Open a passages.safetensors. Raises TensorsError if the file is not whole."""
        tensors = map_tensors(path, scattered=True)
        self._path = path
        rows = tensors["texts.offsets"].size - 1
        texts, ids, metadata = (tensors.strings(name, f"{name}.offsets", rows) for name in PASSAGE_COLUMNS)
        self.ids: Strings = ids
        self._texts, self._metadata = texts, metadata
        self._sources = None
        if SOURCE_TEXTS in tensors:
            self._sources = tensors.strings(SOURCE_TEXTS, f"{SOURCE_TEXTS}.offsets", rows)
        self._lines = None
        if SOURCE_LINES in tensors:
            self._lines = tensors.require(SOURCE_LINES, [rows, len(NO_LINES)], np.uint32)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> Passage:
        return Passage(self.id(row), self.text(row), self.metadata(row))

    def id(self, row: int) -> str:
        """Return the id of one row."""
        return self.ids.text(row)

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return self._texts.text(row)

    def source(self, row: int) -> str:
        """Return the text of one row with its markup, as the model reads it."""
        found = ""
        if self._sources is not None:
            found = self._sources.text(row)
        return found or self.text(row)

    def read(self, rows: AnyArray) -> PassageColumns:
        """Return the passages of some rows, (n,), column by column: in a fifth of the time of one after the other."""
        stated = self._metadata.texts(rows)
        try:
            metadata = json.loads(f"[{','.join(stated)}]")
        except (json.JSONDecodeError, RecursionError):
            metadata = None
        if metadata is None or len(metadata) != len(rows):  # one of them is damaged
            metadata = [self.metadata(row) for row in rows.tolist()]
        return PassageColumns(rows.tolist(), self.ids.texts(rows), self._texts.texts(rows), metadata)

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        try:
            found: dict[str, Any] = json.loads(self._metadata.text(row))
        except (json.JSONDecodeError, RecursionError) as error:
            where = f"{self._path}: the metadata of row {row}"
            raise TensorsError(f"{where} cannot be read ({error}), expected JSON; {DAMAGED}") from error
        return found

    def lines(self, row: int) -> Lines | None:
        """Return the lines of its file that have one row; None if they are not known."""
        if self._lines is None:
            return None
        found = Lines._make(self._lines[row].tolist())
        return None if found == NO_LINES else found
