"""The texts, ids and metadata of the corpus as bytes with offsets: reading one passage reads no other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsearch.engine.tensors import Strings, map_tensors

PASSAGE_COLUMNS = ("texts", "ids", "metadata")


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of the corpus: its id, its text and its other columns."""

    id: str
    text: str
    metadata: dict[str, Any]


class Passages:
    """All rows of the corpus, memory-mapped; `passages[row]` reads one."""

    def __init__(self, path: Path) -> None:
        """Open a passages.safetensors. Raises TensorsError if the file is not whole."""
        tensors = map_tensors(path, scattered=True)
        self._texts, self.ids, self._metadata = (
            Strings(tensors[name], tensors[f"{name}.offsets"]) for name in PASSAGE_COLUMNS
        )

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

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        found: dict[str, Any] = json.loads(self._metadata[row])
        return found
