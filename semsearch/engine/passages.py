"""The texts, ids and metadata of the corpus as bytes with offsets: reading one passage reads no other.

Documents with markup have their sources too. A search reads one only if it is asked for.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from semsearch.engine.tensors import Strings, map_tensors

PASSAGE_COLUMNS = ("texts", "ids", "metadata")
SOURCE_TEXTS = "sources"  # the column of the texts with their markup; "" for a text without any


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of the corpus: its id, its text and its other columns."""

    id: str
    text: str
    metadata: dict[str, Any]


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


class Passages:
    """All rows of the corpus, memory-mapped; `passages[row]` reads one."""

    def __init__(self, path: Path) -> None:
        """Open a passages.safetensors. Raises TensorsError if the file is not whole."""
        tensors = map_tensors(path, scattered=True)
        texts, ids, metadata = (Strings(tensors[name], tensors[f"{name}.offsets"]) for name in PASSAGE_COLUMNS)
        self.ids: Strings = ids
        self._texts, self._metadata = texts, metadata
        self._sources = None
        if SOURCE_TEXTS in tensors:
            self._sources = Strings(tensors[SOURCE_TEXTS], tensors[f"{SOURCE_TEXTS}.offsets"])

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> Passage:
        return Passage(self.id(row), self.text(row), self.metadata(row))

    def id(self, row: int) -> str:
        """Return the id of one row."""
        return self.ids[row].decode()

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return self._texts[row].decode()

    def source(self, row: int) -> str:
        """Return the text of one row with its markup, as the model reads it."""
        found = b""
        if self._sources is not None:
            found = self._sources[row]
        return found.decode() or self.text(row)

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        found: dict[str, Any] = json.loads(self._metadata[row])
        return found
