"""The texts, ids and metadata of the corpus as bytes with offsets: reading one passage reads no other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from function.engine.arrays import AnyArray
from function.engine.tensors import TensorsError, map_tensors

COLUMNS = ("texts", "ids", "metadata")


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of the corpus: its id, its text and its other columns."""

    id: str
    text: str
    metadata: dict[str, Any]


class Passages:
    """All rows of the corpus, memory-mapped; `passages[row]` reads one."""

    def __init__(self, path: Path) -> None:
        """Open a passages.safetensors.

        Raises TensorsError if the file is not whole or its columns do not belong together.
        """
        tensors = map_tensors(path, scattered=True)
        missing = {name for column in COLUMNS for name in (column, f"{column}.offsets")} - tensors.keys()
        if missing:
            raise TensorsError(f"{path}: has no {', '.join(sorted(missing))}; run `python -m export` again")
        self._bytes = {column: tensors[column] for column in COLUMNS}
        self._offsets = {column: tensors[f"{column}.offsets"] for column in COLUMNS}
        for column in COLUMNS:
            offsets, content = self._offsets[column], self._bytes[column]
            kinds = (offsets.dtype.name, offsets.ndim, content.dtype.name, content.ndim)
            if kinds != ("uint64", 1, "uint8", 1) or len(offsets) != len(self._offsets["texts"]) or not len(offsets):
                raise TensorsError(
                    f"{path}: {column} is {content.dtype}{content.shape} with offsets {offsets.dtype}{offsets.shape}, "
                    "expected bytes and as many uint64 offsets in each column; run `python -m export` again"
                )
            if int(offsets[0]) != 0 or int(offsets[-1]) != len(content):
                raise TensorsError(
                    f"{path}: {column} has {len(content)} bytes, its offsets go from {offsets[0]} to {offsets[-1]}; "
                    "run `python -m export` again"
                )

    def __len__(self) -> int:
        return len(self._offsets["texts"]) - 1

    def __getitem__(self, row: int) -> Passage:
        return Passage(self.id(row), self.text(row), self.metadata(row))

    def id_bytes(self) -> tuple[AnyArray, AnyArray]:
        """Return the ids of all rows as mapped UTF-8 bytes (n,) uint8 and offsets (rows + 1,) uint64."""
        return self._bytes["ids"], self._offsets["ids"]

    def id(self, row: int) -> str:
        """Return the id of one row."""
        return self._read("ids", row)

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return self._read("texts", row)

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        found: dict[str, Any] = json.loads(self._read("metadata", row))
        return found

    def _read(self, column: str, row: int) -> str:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} passages")
        begin, end = self._offsets[column][row : row + 2]
        return str(self._bytes[column][int(begin) : int(end)].tobytes(), "utf-8")
