"""A corpus in passages.safetensors, written row by row and read when it is used, so that memory does not hold it."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import overload

import numpy as np

from semsearch.engine.passages import PASSAGE_COLUMNS
from semsearch.engine.tensors import AnyArray, Strings, map_tensors
from semsearch.indexing.corpus.corpus import Append
from semsearch.indexing.files import map_file, save_tensors

STRINGS_AT_ONCE = 4096  # strings in memory while a column is read from its first row to its last


@contextmanager
def writing_passages(path: Path) -> Iterator[Append]:
    """Yield `append(text, id, metadata)`, and write a passages.safetensors of its rows if the block ends without error.

    metadata is one JSON object. The rows wait in temporary files in the path's folder, which needs room for them twice;
    24 bytes of each row stay in memory. The temporary files have no names, so a killed export leaves none behind.
    Raises OSError if the files cannot be written.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(TemporaryFile(dir=path.parent)) for _ in PASSAGE_COLUMNS]
        offsets = [array("Q", [0]) for _ in PASSAGE_COLUMNS]

        def append(*row: str) -> None:
            for file, ends, value in zip(files, offsets, [value.encode() for value in row], strict=True):
                file.write(value)
                ends.append(ends[-1] + len(value))

        yield append
        tensors: dict[str, AnyArray] = {}
        for column, file, ends in zip(PASSAGE_COLUMNS, files, offsets, strict=True):
            tensors |= {column: map_file(file), f"{column}.offsets": np.frombuffer(ends, np.uint64)}
        save_tensors(path, tensors)


class StoredColumn(Sequence[str]):
    """One column of a passages.safetensors.

    The file is mapped again for each use and then released, so that its pages do not count as this process's memory.
    """

    def __init__(self, path: Path, column: str) -> None:
        """Take the file and one of PASSAGE_COLUMNS, which semsearch/engine/passages.py describes."""
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
        tensors = map_tensors(self._path)
        strings = Strings(tensors[self._column], tensors[f"{self._column}.offsets"])
        if isinstance(rows, int):
            return strings[range(self._rows)[rows]].decode()
        return [strings[row].decode() for row in range(self._rows)[rows]]

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, self._rows, STRINGS_AT_ONCE):
            yield from self[begin : begin + STRINGS_AT_ONCE]


def stored_columns(path: Path) -> tuple[StoredColumn, StoredColumn, StoredColumn]:
    """Return the texts, ids and metadata of a passages.safetensors. Raises TensorsError if the file is damaged."""
    texts, ids, metadata = (StoredColumn(path, column) for column in PASSAGE_COLUMNS)
    return texts, ids, metadata
