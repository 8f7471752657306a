"""Tables: the texts of a file in the format that its suffix says, of the files of a folder, or of rows in memory."""

import json
import math
import re
from array import array
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from semsearch.engine.values import id_text
from semsearch.indexing.corpus.columns import (
    TableOptions,
    find_id_column,
    find_text_columns,
    require_names,
    text_names,
)
from semsearch.indexing.corpus.corpus import Corpus, CorpusError, PassageRow, PassageRows, corpus_error, require_unicode
from semsearch.indexing.corpus.folder import find_files, no_files, refusing_changes
from semsearch.indexing.corpus.formats import compact_json, is_csv, rows_of
from semsearch.indexing.corpus.report import ReadReport, Skipped
from semsearch.indexing.corpus.rows import NumberedRows, TableReader
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.walking import WalkRules

USUAL_OPTIONS = TableOptions()
ROW_NUMBER = re.compile(r"0|[1-9][0-9]{,17}")  # an id that can be the number of a row, which has 64 bits


SPLIT_COLUMNS = ("path", "start", "end", "passage")  # the metadata that --split adds

Split = Callable[[str], list[tuple[int, int]]]  # returns the start and the end of each passage of a text


class Table:
    """The texts of a file whose suffix says its format, of the files of a folder, or of rows in memory.

    A folder's files are read in the order of their paths, and row numbers go on from one to the next.
    semsearch/indexing/walking.py says which are skipped.
    The text column is the one named, else "text", else the only one. Several can be named, separated by commas: their
    texts are joined by line breaks, and the first one is metadata too. The id column is the one named, else "id" if
    there is one. Names are case-sensitive.
    """

    def __init__(
        self,
        path: Path,
        options: TableOptions = USUAL_OPTIONS,
        rows: TableReader | None = None,
        split: Split | None = None,
    ) -> None:
        """Take the path, or rows in memory and their name in messages. `split` divides each text into passages."""
        self._path, self._options = path, options
        self._rows, self._split = rows, split
        self._files: list[Path] = []
        self._skipped: tuple[Skipped, ...] = ()
        self._found = _Found(is_csv=False)

    def passages(self, on_progress: OnProgress = no_progress) -> PassageRows:
        """Yield the passages while the file is read, so that no more than some rows are in memory.

        Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the uncompressed
        file) where it can be known, and for a file that changes meanwhile.
        """
        if self._split is None:
            yield from self._texts(on_progress)
            return
        for text, id, metadata, *_ in self._texts(on_progress):
            ranges = self._split(text)
            self._found.divided += len(ranges) > 1
            yield from _divided(text, id, metadata, ranges)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written, and what was counted.

        Raises CorpusError for a source without a single text, and for a row number that is the id of another row.
        """
        found = self._found
        self._require_texts_and_ids()
        report = ReadReport(
            files=max(1, len(self._files)),
            skipped=self._skipped,
            empty_texts=found.rows - found.texts,
            blank_ids=found.blank_ids,
            non_finite=found.non_finite,
            split_texts=found.divided,
            unkept=tuple(found.unkept),
            warnings=() if self._rows is None else self._rows.warnings,
        )
        return replace(written, is_csv=found.is_csv, has_ids=found.has_ids, rows=found.kept), report

    def texts(self) -> list[str]:
        """Return only the texts. Raises CorpusError as the other methods do."""
        texts = [text for text, *_ in self.passages()]
        self._require_texts_and_ids()
        return texts

    def _texts(self, on_progress: OnProgress) -> Iterator[PassageRow]:
        if self._rows is not None:
            self._found = _Found(is_csv=False)
            yield from self._texts_of(self._path, self._rows, on_progress)
            return
        options = self._options
        rules = WalkRules(self._path, ignore=options.ignore, has_pages=False, follow_symlinks=options.follow_symlinks)
        files, self._skipped = find_files(self._path, rules)
        if not files:
            raise no_files(self._path, self._skipped)
        self._files = list(map(Path, files))
        self._found = _Found(is_csv=all(map(is_csv, self._files)))
        for number, file in enumerate(self._files):

            def on_file(step: str, share: float, texts: int = 0, before: int = number) -> None:
                on_progress(step, (before + share) / len(self._files))

            with refusing_changes(file):
                reader = rows_of(file, options.separator, options.decimal_comma)
                yield from self._texts_of(file, reader, on_file)

    def _texts_of(self, path: Path, reader: TableReader, on_progress: OnProgress) -> Iterator[PassageRow]:
        """Yield the texts of one file, or of rows in memory."""
        found, table = self._found, self._options
        if table.id_column is None and reader.id_column is not None:
            table = replace(table, id_column=reader.id_column)
        _require_kept(path, reader, table)
        columns, identifier = _find_columns(path, reader.read(no_progress), table)
        found.unkept.update(dict.fromkeys(reader.unkept))
        elsewhere = {
            *(columns if len(columns) == 1 else columns[1:]),
            identifier,
        }  # columns that metadata do not repeat
        unnamed_before, has_ids, known = len(found.unnamed), False, set[str]()
        try:
            for number, row in reader.read(on_progress):
                where, row_number = reader.place.format(number), found.rows
                found.rows += 1
                if not row.keys() <= known:
                    require_names(path, where, row)
                    known |= row.keys()
                has_ids = has_ids or identifier in row
                text = _text_of_row(path, where, row, columns)
                if not text:
                    continue
                name = "" if identifier is None else _id_of_row(path, where, row, identifier)
                if not name.strip():
                    name = str(row_number)
                    found.unnamed.append(row_number)
                elif ROW_NUMBER.fullmatch(name):
                    found.numbers.append(int(name))
                found.kept.append(row_number)
                found.texts += 1
                yield PassageRow(text, name, _metadata_of_row(path, where, row, elsewhere, found, f"{text}{name}"))
        finally:  # also if not all rows are wanted
            found.has_ids = found.has_ids or has_ids
            found.blank_ids += (len(found.unnamed) - unnamed_before) * has_ids

    def _require_texts_and_ids(self) -> None:
        found, table = self._found, self._options
        if not found.texts:
            no_text, remedy = f"no text in any of {found.rows:,} rows", f"name another column with {table.text_option}"
            raise corpus_error(self._path, None, no_text, "at least one", remedy)
        both = np.intersect1d(np.array(found.unnamed), np.array(found.numbers))
        if table.has_ids and len(both):
            twice = f"a row without an id whose number, {both[0]}, is the id of another row"
            remedy = "write an id in each row, or name another column with --id-column"
            raise corpus_error(self._path, None, twice, "a different id for each", remedy)


def _divided(text: str, id: str, metadata: str, ranges: list[tuple[int, int]]) -> Iterator[PassageRow]:
    """Yield the passages of a row.

    Their metadata also has the row's id as `path`, their first and last character, and their number from 0. The id of
    one of several passages ends with its number from 1. Raises CorpusError if the row has such a column already.
    """
    others = json.loads(metadata)
    if taken := [name for name in SPLIT_COLUMNS if name in others]:
        raise CorpusError(f"--split: found a column {taken[0]!r}, expected none, since --split adds it; rename it")
    for number, (start, end) in enumerate(ranges):
        name = id if len(ranges) == 1 else f"{id}:{number + 1}"
        added = dict(zip(SPLIT_COLUMNS, (id, start, end, number), strict=True))
        yield PassageRow(text[start:end], name, compact_json(others | added))


def read_column(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError as a Table does.
    """
    return Table(path, TableOptions(text_column, has_ids=False, text_option=text_option)).texts()


@dataclass(slots=True)
class _Found:
    """What was found in the files of a table."""

    is_csv: bool
    rows: int = 0
    texts: int = 0
    divided: int = 0  # texts that are several passages
    blank_ids: int = 0
    non_finite: int = 0
    unnamed: "array[int]" = field(default_factory=lambda: array("Q"))  # numbers of the rows without an id
    numbers: "array[int]" = field(default_factory=lambda: array("Q"))  # ids that can be the number of a row
    has_ids: bool = False  # whether a row has an id
    unkept: dict[str, None] = field(default_factory=dict)  # columns whose values a bundle cannot keep
    kept: "array[int]" = field(default_factory=lambda: array("Q"))  # numbers of the rows that have a text


def _require_kept(path: Path, reader: TableReader, table: TableOptions) -> None:
    """Raise CorpusError if the column of the texts or of the ids is left out."""
    needed = [*text_names(table.text_column or "text", reader.unkept)]
    if table.has_ids:
        needed.append(table.id_column or "id")
    for column in needed:
        if column in reader.unkept:
            found = f"values that JSON cannot hold in the column {column!r}"
            raise corpus_error(path, None, found, "text or numbers", "convert them, such as UUIDs to their text")


def _find_columns(path: Path, rows: NumberedRows, table: TableOptions) -> tuple[list[str], str | None]:
    columns: dict[str, None] = {}
    for _, row in rows:
        columns.update(dict.fromkeys(row))
        wanted = {*text_names(table.text_column or "text", columns), *filter(None, [table.id_column])}
        if wanted <= columns.keys():
            break  # nearly always after the first row
    if not columns:
        remedy = "check that the file was written completely"
        raise corpus_error(path, None, "no rows", "at least one row with a column", remedy)
    texts = find_text_columns(path, columns, table)
    return texts, find_id_column(path, columns, texts, table)


def _text_of_row(path: Path, place: str, row: dict[str, object], columns: list[str]) -> str:
    """Return the text of a row, "" if it has none; raises CorpusError for other types."""
    parts = [(column, row[column]) for column in columns if row.get(column) is not None]
    for column, part in parts:
        is_missing = isinstance(part, float) and math.isnan(part)  # in a DataFrame
        if not isinstance(part, str) and not is_missing:
            raise _wrong_type(path, place, column, part, "a string")
    return "\n".join(part for _, part in parts if isinstance(part, str) and part.strip())


def _metadata_of_row(
    path: Path, place: str, row: dict[str, object], elsewhere: Collection[str | None], found: _Found, named: str
) -> str:
    """Return the other columns of a row as a JSON object.

    Raises CorpusError for half of a surrogate pair in them or in `named`, the text and the id.
    """
    others = {key: _plain(row[key], found) for key in row if key not in elsewhere}
    metadata = compact_json({key: value for key, value in others.items() if value is not None})
    try:
        f"{named}{metadata}".encode()
    except UnicodeEncodeError:
        require_unicode(path, place, row)
    return metadata


def _plain(value: object, found: _Found) -> object:
    """Return a value as JSON can hold it; NaN and infinity, which it cannot, are counted and become null."""
    if isinstance(value, float) and not math.isfinite(value):
        found.non_finite += 1
        return None
    if isinstance(value, list):
        return [_plain(each, found) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each, found) for key, each in value.items()}
    return value


def _id_of_row(path: Path, place: str, row: dict[str, object], identifier: str) -> str:
    """Return the id of a row as text, "" where it is null, NaN or missing; raises CorpusError for other types."""
    value = row.get(identifier)
    is_missing = isinstance(value, float) and not math.isfinite(value)  # pandas stores whole numbers beside a blank so
    if value is None or is_missing:
        return ""
    id = id_text(value)
    if id is None:
        raise _wrong_type(path, place, identifier, value, "a string or a number")
    return id


def _wrong_type(path: Path, place: str, column: str, value: object, expected: str) -> CorpusError:
    found = f"{value!r:.40} in the column {column!r}"
    return corpus_error(path, place, found, expected, "correct that row, or name another column")
