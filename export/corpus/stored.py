"""The columns of a passages.safetensors as sequences of strings, read from the file whenever they are used."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import overload

from function.engine.passages import COLUMNS
from function.engine.tensors import map_tensors

ROWS_AT_ONCE = 4096  # strings in memory while a column is read from its first row to its last


class StoredColumn(Sequence[str]):
    """One column of a passages.safetensors.

    The file is mapped for each use and let go of again, so that what was read does not count as this process's memory.
    """

    def __init__(self, path: Path, column: str) -> None:
        """Take the file and one of COLUMNS, which function/engine/passages.py describes."""
        self._path = path
        self._column = column
        self._rows = len(map_tensors(path)[f"{column}.offsets"]) - 1

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        if isinstance(rows, int):
            return self._read(range(self._rows)[rows], 1)[0]
        begin, end, step = rows.indices(self._rows)
        return self._read(begin, max(0, end - begin))[::step] if step > 0 else list(self)[rows]

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, self._rows, ROWS_AT_ONCE):
            yield from self[begin : begin + ROWS_AT_ONCE]

    def _read(self, begin: int, count: int) -> list[str]:
        tensors = map_tensors(self._path)
        offsets = tensors[f"{self._column}.offsets"][begin : begin + count + 1].tolist()
        content = tensors[self._column][offsets[0] : offsets[-1]].tobytes()
        ends = [offset - offsets[0] for offset in offsets]
        return [content[first:last].decode() for first, last in pairwise(ends)]


def stored_columns(path: Path) -> tuple[StoredColumn, StoredColumn, StoredColumn]:
    """Return the texts, ids and metadata of a passages.safetensors. Raises TensorsError if the file is damaged."""
    texts, ids, metadata = (StoredColumn(path, column) for column in COLUMNS)
    return texts, ids, metadata
