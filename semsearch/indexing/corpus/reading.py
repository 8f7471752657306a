"""Read a corpus from a file, in the format that its suffix says, or from the files of a folder."""

import json
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np

from semsearch.aws.s3.published import S3
from semsearch.engine.values import id_text
from semsearch.indexing.corpus.columns import (
    TableOptions,
    find_id_column,
    find_text_columns,
    require_names,
    text_names,
)
from semsearch.indexing.corpus.corpus import Append, Corpus, CorpusError, Skipped, corpus_error, require_unicode
from semsearch.indexing.corpus.folder import find_files, refusing_changes
from semsearch.indexing.corpus.formats import compact_json, is_csv, rows_of
from semsearch.indexing.corpus.passages import stored_columns, writing_passages
from semsearch.indexing.corpus.rows import NumberedRows, TableReader
from semsearch.indexing.errors import first_line, require_packages
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.walking import WalkRules

USUAL_OPTIONS = TableOptions()
ROW_NUMBER = re.compile(r"0|[1-9][0-9]{,17}")  # an id that can be the number of a row, which has 64 bits


def corpus_place(words: str) -> Path:
    """Return the place of a corpus as a path; s3://bucket/key stays recognizable as `s3:/bucket/key`.

    Raises CorpusError for s3:// without a bucket and a key.
    """
    if words.startswith(S3) and len(Path(words).parts) < 3:
        raise CorpusError(f"found {words!r}, expected s3://BUCKET/KEY of a file or a folder; write both")
    return Path(words)


@contextmanager
def fetching_corpus(path: Path) -> Iterator[Path]:
    """Yield a path on this machine that holds the corpus: the path itself, or for s3:// a copy that is deleted later.

    Credentials, region and endpoint are those of the environment, as for Arrow: AWS_PROFILE, AWS_REGION,
    AWS_ENDPOINT_URL. The copy is in the folder for temporary files (TMPDIR).
    Raises CorpusError if it cannot be fetched.
    """
    if path.parts[:1] != ("s3:",):
        yield path
        return
    url = S3 + "/".join(path.parts[1:])
    require_packages(url, "cluster", "pyarrow")
    from pyarrow.fs import FileType, S3FileSystem, copy_files

    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))  # Arrow's options are its two parts
            source = S3FileSystem(endpoint_override=endpoint.netloc or None, scheme=endpoint.scheme or None)
            key = "/".join(path.parts[1:])
            if source.get_file_info(key).type == FileType.Directory:
                copy.mkdir()
            copy_files(key, str(copy), source_filesystem=source)
        except OSError as error:
            raise CorpusError(
                f"{url}: found no corpus that can be read ({first_line(error)}), expected a file or a folder; check "
                "the address and the credentials"
            ) from error
        try:
            yield copy
        except CorpusError as error:  # the message names the address, since the copy is deleted
            raise CorpusError(str(error).replace(str(copy), url)) from error


SPLIT_COLUMNS = ("path", "start", "end", "passage")  # the metadata that --split adds

Split = Callable[[str], list[tuple[int, int]]]  # returns the start and the end of each passage of a text


def read_corpus(
    path: Path,
    passages: Path,
    table: TableOptions = USUAL_OPTIONS,
    on_progress: OnProgress = no_progress,
    split: Split | None = None,
    rows: TableReader | None = None,
) -> Corpus:
    """Return the texts of a file whose suffix says its format, after writing them into `passages`.

    That passages.safetensors is written while the file is read, so that no more than some rows of the corpus are in
    memory, and the returned corpus reads from it. `split` divides each text into passages.

    `rows` reads rows in memory; the path is then their name in messages.
    The path may also be a folder: its files are read in the order of their paths, and row numbers go on from one to the
    next. semsearch/indexing/walking.py says which are skipped.
    The text column is the one named, else "text", else the only one. Several can be named, separated by commas: their
    texts are joined by line breaks, and the first one is metadata too. The id column is the one named, else "id" if
    there is one. Names are case-sensitive.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, for a file without a single text, and for one that changes meanwhile.
    """
    divided = 0
    with writing_passages(passages) as append:

        def append_split(text: str, id: str, metadata: str) -> None:
            nonlocal divided
            assert split is not None
            divided += _append_passages(append, split(text), text, id, metadata)

        add = append_split if split else append
        found, files, skipped = _read(path, table, add, on_progress, rows)
    texts, ids, metadata = stored_columns(passages)
    return Corpus(
        *(texts, ids, metadata),
        empty_texts=found.rows - found.passages,
        blank_ids=found.blank_ids,
        non_finite=found.non_finite,
        files=files,
        skipped=skipped,
        split_texts=divided,
        is_csv=found.is_csv,
        has_ids=found.has_ids,
        left_out=tuple(found.left_out),
        rows=found.kept,
    )


def _append_passages(append: Append, ranges: list[tuple[int, int]], text: str, id: str, metadata: str) -> bool:
    """Append the passages of a row and return whether they are several.

    Their metadata also has the row's id as `path`, their first and last character, and their number from 0. The id of
    one of several passages ends with its number from 1. Raises CorpusError if the row has such a column already.
    """
    others = json.loads(metadata)
    if taken := [name for name in SPLIT_COLUMNS if name in others]:
        raise CorpusError(f"--split: found a column {taken[0]!r}, expected none, since --split adds it; rename it")
    for number, (start, end) in enumerate(ranges):
        name = id if len(ranges) == 1 else f"{id}:{number + 1}"
        added = dict(zip(SPLIT_COLUMNS, (id, start, end, number), strict=True))
        append(text[start:end], name, compact_json(others | added))
    return len(ranges) > 1


def read_texts(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError like read_corpus.
    """
    texts: list[str] = []
    table = TableOptions(text_column, has_ids=False, text_option=text_option)
    _read(path, table, lambda text, *others: texts.append(text), no_progress)
    return texts


@dataclass(slots=True)
class _Found:
    rows: int = 0
    passages: int = 0
    blank_ids: int = 0
    non_finite: int = 0
    is_csv: bool = False
    unnamed: "array[int]" = field(default_factory=lambda: array("Q"))  # numbers of the rows without an id
    numbers: "array[int]" = field(default_factory=lambda: array("Q"))  # ids that can be the number of a row
    has_ids: bool = False  # whether a row has an id
    left_out: dict[str, None] = field(default_factory=dict)  # columns whose values a bundle cannot keep
    kept: "array[int]" = field(default_factory=lambda: array("Q"))  # numbers of the rows that have a text


def _read(
    path: Path,
    table: TableOptions,
    append: Append,
    on_progress: OnProgress,
    rows: TableReader | None = None,
) -> tuple[_Found, int, tuple[Skipped, ...]]:
    """Append the passages of a file, a folder or rows; return what was found, the number of files, and the skipped."""
    files, skipped = list[Path](), tuple[Skipped, ...]()
    if rows is None:
        rules = WalkRules(path, ignore=table.ignore, has_pages=False, follow_symlinks=table.follow_symlinks)
        files, skipped = find_files(path, rules)
    found = _Found(is_csv=rows is None and all(map(is_csv, files)))
    if rows is not None:
        _read_table(path, rows, table, append, found, on_progress)
    for number, file in enumerate(files):

        def on_file(step: str, share: float, texts: int = 0, before: int = number) -> None:
            on_progress(step, (before + share) / len(files))

        with refusing_changes(file):
            reader = rows_of(file, table.separator, table.decimal_comma)
            _read_table(file, reader, table, append, found, on_file)
    if not found.passages:
        no_text, remedy = f"no text in any of {found.rows:,} rows", f"name another column with {table.text_option}"
        raise corpus_error(path, None, no_text, "at least one", remedy)
    both = np.intersect1d(np.array(found.unnamed), np.array(found.numbers))
    if table.has_ids and len(both):
        twice = f"a row without an id whose number, {both[0]}, is the id of another row"
        remedy = "write an id in each row, or name another column with --id-column"
        raise corpus_error(path, None, twice, "a different id for each", remedy)
    return found, max(1, len(files)), skipped


def _read_table(
    path: Path,
    reader: TableReader,
    table: TableOptions,
    append: Append,
    found: _Found,
    on_progress: OnProgress,
) -> None:
    if table.id_column is None and reader.id_column is not None:
        table = replace(table, id_column=reader.id_column)
    _require_kept(path, reader, table)
    columns, identifier = _find_columns(path, reader.read(no_progress), table)
    found.left_out.update(dict.fromkeys(reader.left_out))
    left_out = {*(columns if len(columns) == 1 else columns[1:]), identifier}
    unnamed_before, has_ids, known = len(found.unnamed), False, set[str]()
    for number, row in reader.read(on_progress):
        where, row_number = reader.place.format(number), found.rows
        found.rows += 1
        if not row.keys() <= known:
            require_names(path, where, row)
            known |= row.keys()
        has_ids = has_ids or identifier in row
        parts = [(column, row[column]) for column in columns if row.get(column) is not None]
        for column, part in parts:
            is_missing = isinstance(part, float) and math.isnan(part)  # in a DataFrame
            if not isinstance(part, str) and not is_missing:
                raise _wrong_type(path, where, column, part, "a string")
        passage = "\n".join(part for _, part in parts if isinstance(part, str) and part.strip())
        if not passage:
            continue
        name = "" if identifier is None else _id_of_row(path, where, row, identifier)
        if not name.strip():
            name = str(row_number)
            found.unnamed.append(row_number)
        elif ROW_NUMBER.fullmatch(name):
            found.numbers.append(int(name))
        others = {key: _plain(row[key], found) for key in row if key not in left_out}
        try:
            metadata = compact_json({key: value for key, value in others.items() if value is not None})
        except TypeError as error:
            raise corpus_error(path, where, str(error), "values that JSON can hold", "leave the column out") from error
        try:
            f"{passage}{name}{metadata}".encode()
        except UnicodeEncodeError:
            require_unicode(path, where, row)
            raise
        append(passage, name, metadata)
        found.kept.append(row_number)
        found.passages += 1
    found.has_ids = found.has_ids or has_ids
    found.blank_ids += (len(found.unnamed) - unnamed_before) * has_ids


def _require_kept(path: Path, reader: TableReader, table: TableOptions) -> None:
    """Raise CorpusError if the column of the texts or of the ids is left out."""
    needed = [*text_names(table.text_column or "text", reader.left_out)]
    if table.has_ids:
        needed.append(table.id_column or "id")
    for column in needed:
        if column in reader.left_out:
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


def _plain(value: object, found: _Found) -> object:
    """Return a value as JSON can hold it; NaN and infinity, which it cannot, are counted and become null."""
    if value is None or isinstance(value, str | int | bytes):
        return value
    if isinstance(value, float):
        found.non_finite += not math.isfinite(value)
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, list):
        return [_plain(each, found) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each, found) for key, each in value.items()}
    raise TypeError(f"{type(value).__name__}")


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
