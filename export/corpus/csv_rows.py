"""The rows of a CSV or TSV file."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from export.corpus.corpus import corpus_error
from export.corpus.lines import read_lines


def csv_rows(path: Path, separator: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the line, from 1, and the columns of each row below the header; an empty field is None.

    Raises CorpusError at the first broken row.
    """
    csv.field_size_limit(sys.maxsize)  # the module's own limit, 131,072 characters, is not the format's
    reader = csv.reader(read_lines(path), delimiter=separator, strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
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
            expected = f"{len(header)} as in the header"
            raise corpus_error(path, f"line {line}", f"{len(fields)} fields", expected, remedy)
        else:
            yield line, {key: value or None for key, value in zip(header, fields, strict=True)}


def _check_header(path: Path, line: int, header: list[str], separator: str) -> None:
    """Raise CorpusError if a name repeats, or if the fields seem to be apart by something else."""
    place = f"line {line}"
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        found = f"{header.count(repeated)} columns {repeated!r}"
        raise corpus_error(path, place, found, "each name once", "rename columns in the header")
    if len(header) == 1 and any(other in header[0] for other in ";|\t,"):
        remedy = "write the file with that separator (.tsv means tabs)"
        raise corpus_error(path, place, f"the one column {header[0]!r}", f"columns apart by {separator!r}", remedy)
