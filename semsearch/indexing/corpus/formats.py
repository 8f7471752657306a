"""The rows of CSV, TSV, JSON lines and Parquet, as csv, json and polars read them.

A row is the number of its line, from 1 (of a row of Parquet: its number, from 0), and its columns by name. A file that
is not whole, not UTF-8 or of another kind is refused with the reader's own message.
"""

import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.indexing.corpus.corpus import READ, CorpusError, corpus_error
from semsearch.indexing.corpus.folder import SUFFIXES
from semsearch.indexing.corpus.rows import (
    ROW_PLACE,
    ROWS_PER_READ,
    NumberedRows,
    TableReader,
    plain_value,
    refuse_nanoseconds,
    unkept_columns,
)
from semsearch.indexing.errors import QUOTED_CHARACTERS, first_line
from semsearch.indexing.progress import OnProgress, no_progress

if TYPE_CHECKING:
    import polars as pl

STATED_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)  # Excel's own first line, such as sep=;
DECIMAL_COMMA = re.compile(r"-?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?", re.ASCII)  # the dots are between thousands
REPORT_EVERY = 1000  # lines between two reports of progress

compact_json: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


def is_csv(path: Path) -> bool:
    """Return whether a file has only strings."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in (".csv", ".tsv")


def rows_of(path: Path, separator: str | None = None, decimal_comma: bool = False) -> TableReader:
    """Return the reader of a file. Raises CorpusError for another suffix."""
    match Path(path.name.lower().removesuffix(".gz")).suffix:
        case ".csv":
            return TableReader(partial(csv_rows, separator or ",", decimal_comma, path), "line {}")
        case ".tsv":
            return TableReader(partial(csv_rows, separator or "\t", decimal_comma, path), "line {}")
        case ".json" if _is_array(path):
            return TableReader(partial(array_rows, path))
        case ".jsonl" | ".ndjson" | ".json":
            return TableReader(partial(json_rows, path), "line {}")
        case ".parquet" if not is_gzipped(path):
            return parquet_reader(path)
    raise unknown_suffix(path, SUFFIXES)


def unknown_suffix(path: Path, expected: str) -> CorpusError:
    """Return the error for a file of another kind."""
    found = "".join(path.suffixes[-2:])
    return corpus_error(path, None, f"the suffix {found!r}", expected, "convert or rename the file")


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Raise CorpusError, with the reader's message, for what a file of this kind makes its reader raise."""
    try:
        yield
    except (EOFError, OSError, ValueError, zlib.error) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise
        found = f"{kind} that cannot be read ({first_line(error)})"
        raise corpus_error(path, None, found, f"a whole file of {kind}", "write or fetch the file again") from error


def is_gzipped(path: Path) -> bool:
    """Return whether the file's name says that it is compressed."""
    return path.name.lower().endswith(".gz")


def read_lines(path: Path, on_progress: OnProgress) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzipped, with their ends. Raises CorpusError for anything else."""
    with (
        reading(path, "gzip" * is_gzipped(path) or "text in UTF-8"),
        path.open("rb") as stored,
        gzip.open(stored) if is_gzipped(path) else stored as content,
        io.TextIOWrapper(content, "utf-8-sig", newline="") as lines,
    ):
        size = max(1, os.fstat(stored.fileno()).st_size)
        for number, line in enumerate(lines):
            if number % REPORT_EVERY == 0:
                on_progress(READ, min(0.99, stored.tell() / size))
            yield line


def csv_rows(separator: str, decimal_comma: bool, path: Path, on_progress: OnProgress) -> NumberedRows:
    """Yield the rows below the header of a CSV or TSV file; an empty field is None.

    decimal_comma replaces the comma of a field such as 1.234,50, which becomes 1234.50.

    A first line such as sep=; states another separator, as Excel writes and reads it.
    Raises CorpusError for a wrong header, and at the first row with more or fewer fields than that.
    """
    lines = read_lines(path, on_progress)
    first = next(lines, "")
    stated = STATED_SEPARATOR.fullmatch(first.rstrip("\r\n"))
    if stated:
        separator = stated[1]
    csv.field_size_limit(sys.maxsize)  # the csv module has a limit, the CSV format has none
    reader = csv.reader(lines if stated else chain([first], lines), delimiter=separator, strict=True)
    header: list[str] = []
    try:
        for fields in filter(None, reader):
            line = reader.line_num + bool(stated)
            if not header:
                header = fields
                _check_header(path, line, header, separator)
            elif len(fields) != len(header):
                found, expected = f"{len(fields)} fields", f"{len(header)} as in the header"
                remedy = f"put quotes around a field that holds {separator!r}, or add what is missing"
                raise corpus_error(path, f"line {line}", found, expected, remedy)
            else:
                if decimal_comma:
                    fields = [
                        field.replace(".", "").replace(",", ".") if DECIMAL_COMMA.fullmatch(field) else field
                        for field in fields
                    ]
                yield line, {name: value or None for name, value in zip(header, fields, strict=True)}
    except csv.Error as error:
        place, expected = f"line {reader.line_num + bool(stated)}", "fields as in RFC 4180"
        remedy = "close the quote that opens in this record, or double it"
        raise corpus_error(path, place, f"a broken record ({error})", expected, remedy) from error


def _check_header(path: Path, line: int, header: list[str], separator: str) -> None:
    """Raise CorpusError if a name is padded or repeated, or if another character separates the fields."""
    place = f"line {line}"
    for name in header:
        if name != name.strip() or header.count(name) > 1:  # " id" would not be recognized as the column of ids
            expected = "each name once and without blanks around it"
            raise corpus_error(path, place, f"the column {name!r}", expected, "change the header")
    other = next((other for other in ";|\t," if other in header[0] and other != separator), None)
    if len(header) == 1 and other is not None:
        remedy = "name the file .tsv" if other == "\t" else f"add --separator '{other}'"
        raise corpus_error(path, place, f"the one column {header[0]!r}", f"columns apart by {separator!r}", remedy)


def json_rows(path: Path, on_progress: OnProgress) -> NumberedRows:
    """Yield the object of each line that is not blank. Raises CorpusError at the first line that is not an object."""
    expected, remedy = "one whole JSON object on each line", "correct that line; jq -c '.[]' FILE converts an array"
    for line, text in enumerate(read_lines(path, on_progress), 1):
        if not (content := text.strip()):
            continue
        try:
            row = json.loads(content)
            if not isinstance(row, dict):
                raise ValueError(f"a line that starts with {content[:QUOTED_CHARACTERS]!r}")
        except (ValueError, RecursionError) as error:
            raise corpus_error(path, f"line {line}", first_line(error), expected, remedy) from error
        yield line, row


def _is_array(path: Path) -> bool:
    """Return whether a JSON file begins with an array, not with the object of a first line."""
    first = next((line for line in read_lines(path, no_progress) if line.strip()), "")
    return first.lstrip().startswith("[")


def array_rows(path: Path, on_progress: OnProgress) -> NumberedRows:
    """Yield the objects of a JSON file with one array. Raises CorpusError if it is something else."""
    expected, remedy = "one array of JSON objects", "correct the file, or write one object on each line"
    try:
        rows = json.loads("".join(read_lines(path, on_progress)))
    except (ValueError, RecursionError) as error:
        raise corpus_error(path, None, first_line(error), expected, remedy) from error
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            place = ROW_PLACE.format(number)
            raise corpus_error(path, place, f"{row!r:.{QUOTED_CHARACTERS}}", "a JSON object", remedy)
        yield number, row


def parquet_reader(path: Path, without: Sequence[str] = ()) -> TableReader:
    """Return the reader of a Parquet file, perhaps without some columns.

    Raises CorpusError if it cannot be read, or would lose nanoseconds.
    """
    import polars as pl  # slow to import, and only this format needs it

    with reading_parquet(path):
        table = pl.scan_parquet(path, glob=False).drop(without)
        unkept = unkept_columns(table.collect_schema())
        table = table.drop(unkept)
        refuse_nanoseconds(path, table)
    return TableReader(partial(parquet_rows, path, table), unkept=unkept)


def parquet_rows(path: Path, table: "pl.LazyFrame", on_progress: OnProgress) -> NumberedRows:
    """Yield the rows of a Parquet file, ROWS_PER_READ at a time. Raises CorpusError if it cannot be read."""
    import polars as pl

    with reading_parquet(path):
        rows = table.select(pl.len()).collect().item()
        for begin in range(0, rows, ROWS_PER_READ):
            on_progress(READ, min(0.99, begin / rows))
            for number, row in enumerate(table.slice(begin, ROWS_PER_READ).collect().iter_rows(named=True), begin):
                yield number, {name: plain_value(value, number, name) for name, value in row.items()}


@contextmanager
def reading_parquet(path: Path) -> Iterator[None]:
    """Raise CorpusError, with polars' message, for a file that it cannot read."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        found = f"Parquet that cannot be read ({first_line(error)})"
        raise corpus_error(path, None, found, "a whole Parquet file", "write or fetch the file again") from error
