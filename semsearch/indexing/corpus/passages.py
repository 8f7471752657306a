"""A corpus in passages.safetensors, written row by row and read when it is used, so that memory does not hold it."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise, repeat
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol, overload

import numpy as np

from semsearch.engine.passages import PASSAGE_COLUMNS, SOURCE_TEXTS
from semsearch.engine.tensors import AnyArray, Strings, map_tensors
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.digests import Positions
from semsearch.indexing.tensor_files import map_file, save_tensors

STRINGS_AT_ONCE = 4096  # strings in memory while a column is read from its first row to its last


class AppendPassage(Protocol):
    """Take a text, its id, its metadata as one JSON object, and its source: the text with its markup, if it has any."""

    def __call__(self, text: str, id: str, metadata: str, source: str = "", /) -> object:
        """Append the passage."""


@contextmanager
def writing_passages(path: Path) -> Iterator[AppendPassage]:
    """Yield what appends a passage, and write a passages.safetensors of all if the block ends without error.

    Without a source in any row, the file has no sources. The rows wait in temporary files in the path's folder, which
    needs room for them twice; 32 bytes of each row stay in memory. The temporary files have no names, so a killed
    export leaves none behind.
    Raises OSError if the files cannot be written.
    """
    columns = (*PASSAGE_COLUMNS, SOURCE_TEXTS)
    with ExitStack() as opened:
        files = [opened.enter_context(TemporaryFile(dir=path.parent)) for _ in columns]
        offsets = [array("Q", [0]) for _ in columns]

        def append(text: str, id: str, metadata: str, source: str = "") -> None:
            encoded = [value.encode() for value in (text, id, metadata, source)]
            for file, ends, value in zip(files, offsets, encoded, strict=True):
                file.write(value)
                ends.append(ends[-1] + len(value))

        yield append
        tensors: dict[str, AnyArray] = {}
        for column, file, ends in zip(columns, files, offsets, strict=True):
            if column == SOURCE_TEXTS and not ends[-1]:
                continue
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
        self._rows = len(self._strings())

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        strings = self._strings()
        if isinstance(rows, int):
            return strings.text(range(self._rows)[rows])
        return [strings.text(row) for row in range(self._rows)[rows]]

    def _strings(self) -> Strings:
        return map_tensors(self._path).strings(self._column, f"{self._column}.offsets")

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, self._rows, STRINGS_AT_ONCE):
            yield from self[begin : begin + STRINGS_AT_ONCE]


def stored_columns(path: Path) -> tuple[StoredColumn, StoredColumn, StoredColumn]:
    """Return the texts, ids and metadata of a passages.safetensors. Raises TensorsError if the file is damaged."""
    texts, ids, metadata = (StoredColumn(path, column) for column in PASSAGE_COLUMNS)
    return texts, ids, metadata


def stored_sources(path: Path) -> StoredColumn | None:
    """Return the texts of a passages.safetensors with their markup, "" for one without; None if no text has any."""
    if SOURCE_TEXTS not in map_tensors(path):
        return None
    return StoredColumn(path, SOURCE_TEXTS)


def read_rows(column: Sequence[str], rows: Positions) -> Iterator[tuple[int, str]]:
    """Yield some rows of a column, each with its string. rows ascend; some thousands are read at a time."""
    places = np.searchsorted(rows, range(0, len(column) + STRINGS_AT_ONCE, STRINGS_AT_ONCE)).tolist()
    for begin, end in pairwise(places):
        if begin < end:
            wanted = rows[begin:end].tolist()
            strings = column[wanted[0] : wanted[-1] + 1]
            yield from ((row, strings[row - wanted[0]]) for row in wanted)


def stored_rows(path: Path) -> Iterator[PassageRow]:
    """Yield the text, the id, the metadata and the source of each row of a passages.safetensors."""
    texts, ids, metadata = stored_columns(path)
    sources = stored_sources(path) or repeat("", len(texts))
    return (PassageRow(*row) for row in zip(texts, ids, metadata, sources, strict=True))
