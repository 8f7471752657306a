"""The rows of a CSV or TSV file."""

import csv
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from export.corpus.columns import require_names
from export.corpus.corpus import corpus_error
from export.corpus.formats.lines import read_lines
from export.progress import OnProgress

STATED_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)  # Excel's own first line, such as sep=;


def csv_rows(path: Path, separator: str, on_progress: OnProgress) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the line, from 1, and the columns of each row below the header; an empty field is None.

    A first line such as sep=; states another separator, as Excel writes and reads it.
    Raises CorpusError at the first broken row.
    """
    lines = read_lines(path, on_progress)
    first = next(lines, "")
    stated = STATED_SEPARATOR.fullmatch(first.rstrip("\r\n"))
    if stated is None:
        lines, lines_before = chain([first], lines), 0
    else:
        separator, lines_before = stated[1], 1
    csv.field_size_limit(sys.maxsize)  # the csv module has a limit, the CSV format has none
    reader = csv.reader(lines, delimiter=separator, strict=True)
    header: list[str] | None = None
    while True:
        line = lines_before + reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "new-line character" in str(error):
                found, remedy = "a carriage return alone", "save the file with line ends of LF or CRLF"
                raise corpus_error(path, f"line {line}", found, "a line feed after it", remedy) from error
            found = f"a record that breaks off or has a stray quote ({error})"
            remedy = 'close the quote that opens in this record, or write it as ""'
            raise corpus_error(path, f"line {line}", found, "fields as in RFC 4180", remedy) from error
        if not fields:
            continue
        if header is None:
            _check_header(path, line, fields, separator)
            header = fields
        elif len(fields) != len(header):
            remedy = f"put quotes around a field that holds {separator!r}, or add what is missing"
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            expected = f"{len(header)} as in the header"
            raise corpus_error(path, f"line {line}", found, expected, remedy)
        else:
            yield line, {key: value or None for key, value in zip(header, fields, strict=True)}


def _check_header(path: Path, line: int, header: list[str], separator: str) -> None:
    """Raise CorpusError if a name is missing, padded or repeated, or if another character separates the fields."""
    place = f"line {line}"
    remedy = (
        "name it in the header, or leave the column out "
        "(pandas writes its index without a name: use to_csv(..., index=False))"
    )
    require_names(path, place, header, remedy)
    for name in header:
        if name != name.strip():  # " id" would not be recognized as the column of ids
            remedy = "remove them from the header, and from the rows if they have them too"
            raise corpus_error(path, place, f"the column {name!r}", "no blanks around a name", remedy)
        if header.count(name) > 1:
            found = f"{header.count(name)} columns {name!r}"
            raise corpus_error(path, place, found, "each name once", "rename columns in the header")
    other = next((other for other in ";|\t," if other in header[0] and other != separator), None)
    if len(header) == 1 and other is not None:
        remedy = "name the file .tsv" if other == "\t" else f"put sep={other} on a line before the header"
        remedy += f", or write the file with {separator!r}"
        raise corpus_error(path, place, f"the one column {header[0]!r}", f"columns apart by {separator!r}", remedy)
