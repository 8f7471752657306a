"""Read passages from CSV, TSV, JSON lines or Parquet, and say where a file is broken.

CSV and JSON lines go row by row through Python's own csv and json modules, which know the line of every fault
and change no value. polars 2.1 is faster (0.1 s instead of 1 s for 194,182 headlines), but it fills a CSV row
that is too short with nulls, refuses a lone quote inside a field, rounds integers beyond 2**53 that share a
JSON column with floats, and refuses columns of mixed types. Parquet is typed already: polars reads it whole,
and is imported only then.

Left out: guessing encodings, separators or types, and repairing rows.
"""

import csv
import gzip
import json
import math
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"
JSON_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}

Row = tuple[int, dict[str, object]]  # the line it starts on, from 1; its columns


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages ready to embed: texts, ids and metadata have one entry each per passage, in the file's order.

    A row is any record of the source, counted from 0; blank lines are no rows. Ids may repeat.
    Metadata leaves out columns that are null in that row; an empty CSV field counts as null.
    """

    texts: list[str]  # never empty or blank, otherwise exactly as in the file
    ids: list[str]  # the id column as text; the row number where there is none or it is blank
    metadata: list[str]  # a compact JSON object of the other columns, "{}" when there are none
    empty_texts: int  # rows skipped because their text was empty, blank or null


class CorpusError(ValueError):
    """A corpus that cannot be read whole: the message says where, what was found, expected, and to do."""


def read_corpus(
    path: Path, text_column: str | None = None, id_column: str | None = None, text_option: str = "--text-column"
) -> Corpus:
    """Give back the passages of a file whose suffix says its format.

    The text column is the one named, else "text", else the only one. The id column is the one named, else
    "id", else there is none. Names are case-sensitive. text_option is the command line's option for the text
    column, which messages name.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, and for a file without a single text.
    """
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no file"
        raise _error(path, None, found, f"a file ending in {SUFFIXES}", "check the path")
    name = path.name.lower()
    match Path(name.removesuffix(".gz")).suffix:
        case ".csv":
            corpus = _collect(path, lambda: _csv_rows(path, ","), text_column, id_column, text_option)
        case ".tsv":
            corpus = _collect(path, lambda: _csv_rows(path, "\t"), text_column, id_column, text_option)
        case ".jsonl" | ".ndjson" | ".json":
            corpus = _collect(path, lambda: _json_rows(path), text_column, id_column, text_option)
        case ".parquet" if not name.endswith(".gz"):
            corpus = _read_parquet(path, text_column, id_column, text_option)
        case _:
            suffix = "".join(path.suffixes[-2:])
            raise _error(path, None, f"the suffix {suffix!r}", SUFFIXES, "convert or rename the file")
    if not corpus.texts:
        found = f"no text in any of {corpus.empty_texts:,} rows"
        raise _error(path, None, found, "at least one", f"name another column with {text_option}")
    return corpus


def _error(path: Path, line: int | None, found: str, expected: str, remedy: str) -> CorpusError:
    """Give the four parts of a message their one form."""
    where = str(path) if line is None else f"{path}, line {line}"
    return CorpusError(f"{where}: found {found}, expected {expected}; {remedy}")


# Columns


def _text_column(path: Path, columns: Collection[str], asked: str | None, option: str) -> str:
    """Say which column holds the text; raises CorpusError if that is not clear."""
    if asked is not None:
        _require_column(path, columns, asked, option)
        return asked
    if "text" in columns:
        return "text"
    if len(columns) == 1:
        return next(iter(columns))
    found = f"the columns {_listed(columns)}"
    raise _error(path, None, found, "one named 'text'", f"name the one to embed with {option}")


def _id_column(path: Path, columns: Collection[str], text: str, asked: str | None) -> str | None:
    """Say which column holds the ids; raises CorpusError if the one asked for is missing.

    Without asking it may be "id" although columns, which can be those of the first rows only, lack it.
    """
    if asked is not None:
        _require_column(path, columns, asked, "--id-column")
        return asked
    return None if text == "id" else "id"


def _require_column(path: Path, columns: Collection[str], asked: str, option: str) -> None:
    """Raise CorpusError, with the closest name there is, if a column is missing."""
    if asked not in columns:
        by_lower = {column.lower(): column for column in columns}
        close = get_close_matches(asked.lower(), by_lower, n=1)
        remedy = f"did you mean {option} {by_lower[close[0]]!r}?" if close else f"name another with {option}"
        raise _error(path, None, f"the columns {_listed(columns)}", f"a column {asked!r}", remedy)


def _listed(columns: Collection[str]) -> str:
    return ", ".join(repr(column) for column in columns) or "(none)"


# CSV and JSON lines


def _collect(
    path: Path, rows: Callable[[], Iterator[Row]], text_column: str | None, id_column: str | None, text_option: str
) -> Corpus:
    """Give back the passages of a file read row by row; rows() starts from the first row."""
    wanted = {text_column or "text"} | ({id_column} if id_column is not None else set())
    columns: dict[str, None] = {}
    for _, row in rows():
        columns.update(dict.fromkeys(row))
        if wanted <= columns.keys():
            break  # nearly always after the first row
    if not columns:
        remedy = "check that the file was written completely"
        raise _error(path, None, "no rows", "at least one row with a column", remedy)
    text = _text_column(path, columns, text_column, text_option)
    identifier = _id_column(path, columns, text, id_column)

    texts: list[str] = []
    ids: list[str] = []
    metadata: list[str] = []
    number = -1
    for number, (line, row) in enumerate(rows()):
        passage = row.get(text)
        if passage is None or (isinstance(passage, str) and not passage.strip()):
            continue
        if not isinstance(passage, str):
            raise _wrong_type(path, line, text, passage, "a string")
        texts.append(passage)
        ids.append(_id_of_row(path, line, row, identifier, number))
        others = {key: row[key] for key in row if key not in (text, identifier) and row[key] is not None}
        metadata.append(_encode(others))
    return Corpus(texts, ids, metadata, empty_texts=number + 1 - len(texts))


def _id_of_row(path: Path, line: int, row: dict[str, object], identifier: str | None, number: int) -> str:
    value = row.get(identifier) if identifier is not None else None
    if isinstance(value, list | dict):
        raise _wrong_type(path, line, str(identifier), value, "a string or a number")
    value_as_text = value if isinstance(value, str) else "" if value is None else _encode(value)
    return value_as_text if value_as_text.strip() else str(number)


def _wrong_type(path: Path, line: int, column: str, value: object, expected: str) -> CorpusError:
    found = f"{JSON_TYPES[type(value)]} in the column {column!r}"
    return _error(path, line, found, expected, "correct that line, or name another column")


def _csv_rows(path: Path, separator: str) -> Iterator[Row]:
    """Give the rows below the header, an empty field as None; raises CorpusError at the first broken one."""
    csv.field_size_limit(sys.maxsize)  # the module's own limit, 131,072 characters, is not the format's
    reader = csv.reader(_lines(path), delimiter=separator, strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "new-line character" in str(error):
                remedy = "save the file with line ends of LF or CRLF"
                raise _error(path, line, "a carriage return alone", "a line feed after it", remedy) from error
            found = f"a record that breaks off or has a stray quote ({error})"
            remedy = 'close the quote that opens in this record, or write it as ""'
            raise _error(path, line, found, "fields as in RFC 4180", remedy) from error
        if not fields:
            continue
        if header is None:
            _check_header(path, line, fields, separator)
            header = fields
        elif len(fields) != len(header):
            remedy = f"put quotes around a field that holds {separator!r}, or add what is missing"
            expected = f"{len(header)} as in the header"
            raise _error(path, line, f"{len(fields)} fields", expected, remedy)
        else:
            yield line, {key: value or None for key, value in zip(header, fields, strict=True)}


def _check_header(path: Path, line: int, header: list[str], separator: str) -> None:
    """Raise CorpusError if a name repeats, or if the fields seem to be apart by something else."""
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        found = f"{header.count(repeated)} columns {repeated!r}"
        raise _error(path, line, found, "each name once", "rename columns in the header")
    if len(header) == 1 and any(other in header[0] for other in ";|\t,"):
        remedy = "write the file with that separator (.tsv means tabs)"
        raise _error(path, line, f"the one column {header[0]!r}", f"columns apart by {separator!r}", remedy)


def _json_rows(path: Path) -> Iterator[Row]:
    """Give the object of each line; raises CorpusError at the first line that is none."""
    for line, text in enumerate(_lines(path), 1):
        start = text.strip()[:40]
        if not start:
            continue
        if not start.startswith("{"):
            remedy = "write one object per line; for an array: jq -c '.[]' FILE"
            raise _error(path, line, repr(start), "a JSON object on each line", remedy)
        try:
            row = cast(dict[str, object], _DECODER.decode(text.rstrip()))
            if "\\u" in text:
                _encode(row).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError) as error:
            reason = str(error)
            if isinstance(error, json.JSONDecodeError):
                reason = f"{error.msg} at column {error.colno}"
            found = f"broken JSON ({reason})"
            raise _error(path, line, found, "one whole object on the line", "correct that line") from error
        yield line, row


def _finite(number: str) -> float:
    """Read a JSON number with a point or exponent; raises ValueError if it is too large for a float."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large")
    return value


def _refuse(constant: str) -> float:
    """Raise ValueError for NaN and Infinity, which Python would read although JSON has none."""
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))  # what str.strip takes; polars leaves some of it
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _lines(path: Path) -> Iterator[str]:
    """Give the lines of a UTF-8 file, plain or gzipped, with their ends and without a byte order mark.

    Raises CorpusError for other bytes and for a damaged gzip file.
    """
    line, offset = 0, 0
    with _open(path) as file:
        try:
            for line, raw in enumerate(file, 1):
                text = raw.decode()
                yield text.removeprefix("\ufeff") if line == 1 else text
                offset += len(raw)
        except UnicodeDecodeError as error:
            found = f"the byte 0x{error.object[error.start]:02x} at byte offset {offset + error.start}"
            remedy = "save the file as UTF-8, or correct that line"
            raise _error(path, line, found, "UTF-8", remedy) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            found = f"damaged or no gzip data ({error})"
            remedy = "fetch the file again, or drop .gz from its name if it is not compressed"
            raise _error(path, line + 1, found, "a whole gzip file", remedy) from error


def _open(path: Path) -> BinaryIO:
    if path.name.lower().endswith(".gz"):
        return cast(BinaryIO, gzip.open(path))
    return path.open("rb")


# Parquet


def _read_parquet(path: Path, text_column: str | None, id_column: str | None, text_option: str) -> Corpus:
    """Give back the passages of a Parquet file; NaN and infinity, unknown to JSON, are null in metadata."""
    import polars as pl  # 0.1 s and the one heavy dependency, for this format only

    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        found = f"no readable Parquet ({str(error).splitlines()[0]})"
        raise _error(path, None, found, "a whole Parquet file", "fetch or write the file again") from error
    if frame.is_empty():
        raise _error(path, None, "no rows", "at least one", "check that the file was written completely")
    text = _text_column(path, frame.columns, text_column, text_option)
    identifier = _id_column(path, frame.columns, text, id_column)

    texts = frame[text]
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        found = f"{texts.dtype} in the column {text!r}"
        raise _error(path, None, found, "strings", f"name another column with {text_option}")
    texts = texts.cast(pl.String).alias("text")
    row_numbers = pl.int_range(len(frame), eager=True).cast(pl.String)
    ids = row_numbers
    if identifier in frame.columns:
        ids = _id_strings(path, frame[identifier])
        ids = ids.zip_with(_is_filled(ids), row_numbers)
    others = [column for column in frame if column.name not in (text, identifier)]
    metadata = _metadata_objects(path, others, len(frame))
    kept = _is_filled(texts)
    return Corpus(
        texts=texts.filter(kept).to_list(),
        ids=ids.filter(kept).to_list(),
        metadata=metadata.filter(kept).to_list(),
        empty_texts=len(frame) - int(kept.sum()),
    )


def _is_filled(strings: "pl.Series") -> "pl.Series":
    return strings.fill_null("").str.strip_chars(_BLANKS) != ""


def _id_strings(path: Path, column: "pl.Series") -> "pl.Series":
    import polars as pl

    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Duration):
        found = f"{column.dtype} in the column {column.name!r}"
        raise _error(path, None, found, "strings or numbers", "name another column with --id-column")
    return column.alias("id").cast(pl.String)


def _metadata_objects(path: Path, columns: list["pl.Series"], rows: int) -> "pl.Series":
    """Give each row as a compact JSON object of the columns that are not null there."""
    import polars as pl

    objects = pl.repeat("{", rows, eager=True)
    for column in columns:
        if _holds_binary(column.dtype):
            found = f"{column.dtype} in the column {column.name!r}"
            raise _error(path, None, found, "values that JSON can hold", "write the file without that column")
        member = column.to_frame().to_struct().struct.json_encode().str.slice(1).str.strip_suffix("}") + ","
        # Renamed, since Series methods take names such as "*" or "^a.*$" for patterns.
        objects += member.zip_with(column.alias("value").is_not_null(), pl.Series([""]))
    return objects.str.strip_suffix(",") + "}"


def _holds_binary(dtype: "pl.DataType") -> bool:
    """Say whether bytes are in a column, at any depth: polars 2.1 panics when it writes them as JSON."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return any(_holds_binary(cast(pl.DataType, field.dtype)) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_binary(cast(pl.DataType, dtype.inner))
    return dtype == pl.Binary
