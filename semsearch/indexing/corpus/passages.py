"""A corpus in passages.safetensors, written row by row and read when it is used, so that memory does not hold it."""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, overload

import numpy as np

from semsearch.engine.passages import NO_LINES, PASSAGE_COLUMNS, SOURCE_LINES, SOURCE_TEXTS, Lines
from semsearch.engine.tensors import AnyArray, Strings, Tensors, map_tensors
from semsearch.indexing.corpus.corpus import Corpus, OlderRows, PassageRow, heading_prefix
from semsearch.indexing.digests import Positions
from semsearch.indexing.tensor_files import map_file, save_tensors

ROW_COLUMNS = (*PASSAGE_COLUMNS, SOURCE_TEXTS)  # in the order of `PassageRow.strings`
BYTES_OF_LINES = 16  # bytes of the four numbers of a row
STRINGS_AT_ONCE = 4096  # strings in memory while a column is read from its first row to its last


class PassageWriter:
    """The passages of a file that is being written: see `writing_passages`."""

    def __init__(self, files: Sequence[IO[bytes]], older: Path | None) -> None:
        """Take a temporary file for the strings of each column, and the older passages.safetensors, if there is one."""
        self._files = files
        self._ends = [array("Q", [0]) for _ in files]
        self._rows = array("q")  # the older row of each row
        self._lines = bytearray()  # the lines of each row up to the last one that has any
        tensors = None if older is None else map_tensors(older)
        self._older = [] if tensors is None else _columns_of(tensors)
        self._older_lines = None if tensors is None else _lines_of(tensors)

    def append(self, passage: PassageRow | OlderRows) -> None:
        """Append a passage, or passages of the older file."""
        if isinstance(passage, OlderRows):
            self._append_older(passage)
            return
        encoded = [value.encode() for value in passage.strings]
        for file, ends, value in zip(self._files, self._ends, encoded, strict=True):
            file.write(value)
            ends.append(ends[-1] + len(value))
        if passage.lines != NO_LINES:
            self._add_lines(np.array(passage.lines, np.uint32))
        self._rows.append(-1)

    def _append_older(self, rows: OlderRows) -> None:
        for file, ends, strings in zip(self._files, self._ends, self._older, strict=True):
            if strings is None:
                ends.extend(repeat(ends[-1], rows.end - rows.begin))
                continue
            offsets = strings.offsets_of(rows.begin, rows.end)
            file.write(strings.content[int(offsets[0]) : int(offsets[-1])].data)
            ends.frombytes((offsets[1:] - offsets[0] + np.uint64(ends[-1])).tobytes())
        if self._older_lines is not None:
            self._add_lines(self._older_lines[rows.begin : rows.end])
        self._rows.extend(range(rows.begin, rows.end))

    def _add_lines(self, lines: AnyArray) -> None:
        """Add the lines of the next rows. Rows without any take no memory until a later one has some."""
        self._lines += bytes(len(self._rows) * BYTES_OF_LINES - len(self._lines))
        self._lines += lines.tobytes()

    def older_rows(self) -> Positions | None:
        """Return the row of the older file that each row is, (rows,), -1 for a new one; None without an older file."""
        if not self._older:
            return None
        return np.frombuffer(self._rows, np.int64).astype(np.intp)

    def tensors(self) -> dict[str, AnyArray]:
        """Return the tensors of the file. If no row has a source, there are none of sources, and so for lines."""
        tensors: dict[str, AnyArray] = {}
        for column, file, ends in zip(ROW_COLUMNS, self._files, self._ends, strict=True):
            if column == SOURCE_TEXTS and not ends[-1]:
                continue
            tensors |= {column: map_file(file), f"{column}.offsets": np.frombuffer(ends, np.uint64)}
        if self._lines.count(0) < len(self._lines):
            self._add_lines(np.empty(0, np.uint32))
            tensors[SOURCE_LINES] = np.frombuffer(self._lines, np.uint32).reshape(-1, len(NO_LINES))
        return tensors


def _columns_of(tensors: Tensors) -> list[Strings | None]:
    """Return the strings of each column of a passages.safetensors; None if no text has a source."""
    return [tensors.strings(name, f"{name}.offsets").check() if name in tensors else None for name in ROW_COLUMNS]


def _lines_of(tensors: Tensors) -> AnyArray | None:
    """Return the lines of a passages.safetensors, (rows, 4) uint32; None if no text has any."""
    if SOURCE_LINES not in tensors:
        return None
    return tensors.require(SOURCE_LINES, [len(tensors["texts.offsets"]) - 1, len(NO_LINES)], np.uint32)


@contextmanager
def writing_passages(path: Path, older: Path | None = None) -> Iterator[PassageWriter]:
    """Yield what takes passages, and write a passages.safetensors of all if the block ends without error.

    older is a passages.safetensors whose rows can be taken. The rows wait in temporary files in the path's folder,
    which needs room for them twice; 40 bytes of each row stay in memory, and 16 for its lines. The temporary files have
    no names, so a killed process leaves none behind.
    Raises OSError if the files cannot be written, and TensorsError if the older file is damaged.
    """
    with ExitStack() as opened:
        writer = PassageWriter([opened.enter_context(TemporaryFile(dir=path.parent)) for _ in ROW_COLUMNS], older)
        yield writer
        save_tensors(path, writer.tensors())


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
        if isinstance(rows, int):
            return self._strings().text(range(self._rows)[rows])
        return self.take(range(self._rows)[rows])

    def take(self, rows: Iterable[int]) -> list[str]:
        """Return the strings of some rows. The file is mapped once for all."""
        strings = self._strings()
        return [strings.text(row) for row in rows]

    def _strings(self) -> Strings:
        return map_tensors(self._path).strings(self._column, f"{self._column}.offsets")

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, self._rows, STRINGS_AT_ONCE):
            yield from self[begin : begin + STRINGS_AT_ONCE]


class PrefixedTexts(Collection[str]):
    """The texts of passages after the path of their headings, made when they are used."""

    def __init__(self, texts: Sequence[str], metadata: Sequence[str], sources: Sequence[str] | None = None) -> None:
        """Take columns of passages; metadata is JSON. The source of a passage, if it has one, replaces its text."""
        self._texts, self._metadata, self._sources = texts, metadata, sources

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return strings_at(self, np.arange(len(self)))

    def __contains__(self, text: object) -> bool:
        return any(text == each for each in self)

    def take(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of some rows."""
        texts, metadata = _take(self._texts, rows), _take(self._metadata, rows)
        sources = repeat("") if self._sources is None else _take(self._sources, rows)
        return [
            heading_prefix(json.loads(stated)) + (source or text)
            for text, stated, source in zip(texts, metadata, sources, strict=False)
        ]


def texts_for_model(corpus: Corpus) -> Collection[str]:
    """Return the texts of a corpus as the model reads them."""
    if corpus.heading_prefix:
        return PrefixedTexts(corpus.texts, corpus.metadata, corpus.sources)
    return corpus.texts


def strings_at(strings: Collection[str], rows: Positions) -> Iterator[str]:
    """Yield the strings of some rows, in their order. Some thousand of them are in memory at the same time."""
    for begin in range(0, len(rows), STRINGS_AT_ONCE):
        yield from _take(strings, rows[begin : begin + STRINGS_AT_ONCE].tolist())


def _take(strings: Collection[str], rows: Sequence[int]) -> list[str]:
    if isinstance(strings, StoredColumn | PrefixedTexts):
        return strings.take(rows)
    assert isinstance(strings, Sequence)
    return [strings[row] for row in rows]


def passages_at(corpus: Corpus, rows: Positions) -> Iterator[PassageRow]:
    """Yield the passages of some rows of a corpus, without their lines."""
    columns = [corpus.texts, corpus.ids, corpus.metadata]
    if corpus.sources is not None:
        columns.append(corpus.sources)
    for values in zip(*(strings_at(column, rows) for column in columns), strict=True):
        yield PassageRow(*values)


def stored_columns(path: Path) -> tuple[StoredColumn, StoredColumn, StoredColumn]:
    """Return the texts, ids and metadata of a passages.safetensors. Raises TensorsError if the file is damaged."""
    texts, ids, metadata = (StoredColumn(path, column) for column in PASSAGE_COLUMNS)
    return texts, ids, metadata


def stored_sources(path: Path) -> StoredColumn | None:
    """Return the texts of a passages.safetensors with their markup, "" for one without; None if no text has any."""
    if SOURCE_TEXTS not in map_tensors(path):
        return None
    return StoredColumn(path, SOURCE_TEXTS)


def stored_rows(path: Path) -> Iterator[PassageRow]:
    """Yield the text, the id, the metadata, the source and the lines of each row of a passages.safetensors."""
    texts, ids, metadata = stored_columns(path)
    sources = stored_sources(path) or repeat("", len(texts))
    found = _lines_of(map_tensors(path))
    lines = repeat(NO_LINES, len(texts)) if found is None else map(Lines._make, found.tolist())
    return (
        PassageRow(text=text, id=id, metadata=metadata_of_row, source=source, lines=place)
        for text, id, metadata_of_row, source, place in zip(texts, ids, metadata, sources, lines, strict=True)
    )
