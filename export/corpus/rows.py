"""From the rows of CSV or JSON lines to passages."""

from collections.abc import Callable, Iterator
from pathlib import Path

from export.corpus.columns import Columns, find_id_column, find_text_column
from export.corpus.corpus import Append, CorpusError, Counts, corpus_error
from export.corpus.formats.json_rows import compact_json
from export.corpus.formats.lines import is_gzipped, require_whole_gzip
from export.corpus.ids import Ids, id_of_number
from export.progress import OnProgress, no_progress

JSON_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}

Rows = Iterator[tuple[int, dict[str, object]]]  # the line that each starts on, from 1, and its columns
ReadRows = Callable[[OnProgress], Rows]  # reads a file from its first row on


def read_rows(
    path: Path,
    rows: ReadRows,
    requested: Columns,
    append: Append,
    ids: Ids,
    rows_before: int,
    on_progress: OnProgress,
) -> Counts:
    """Append the passages of a text file.

    `ids` has the ids of the files before it, and rows_before is the number of its first row.
    Raises CorpusError for a damaged gzip file, and for texts and ids that are not text.
    """
    if is_gzipped(path):
        require_whole_gzip(path)
    wanted = {requested.text or "text"} | ({requested.id} if requested.id is not None else set())
    columns: dict[str, None] = {}
    for _, row in rows(no_progress):
        columns.update(dict.fromkeys(row))
        if wanted <= columns.keys():
            break  # nearly always after the first row
    if not columns:
        remedy = "check that the file was written completely"
        raise corpus_error(path, None, "no rows", "at least one row with a column", remedy)
    text = find_text_column(path, columns, requested)
    identifier = find_id_column(path, columns, text, requested)

    ids.begin(path, lambda line: f"line {line}")
    number, passages = -1, 0
    has_ids = False
    for number, (line, row) in enumerate(rows(on_progress)):
        has_ids = has_ids or identifier in row
        passage = row.get(text)
        if passage is None or (isinstance(passage, str) and not passage.strip()):
            continue
        if not isinstance(passage, str):
            raise _wrong_type(path, line, text, passage, "a string")
        name = "" if identifier is None else _id_of_row(path, line, row, identifier)
        others = {key: row[key] for key in row if key not in (text, identifier) and row[key] is not None}
        append(passage, ids.replace_blank(name, rows_before + number, line), compact_json(others))
        passages += 1
    blank_ids = ids.count_blank()
    return Counts(passages, empty_texts=number + 1 - passages, blank_ids=blank_ids if has_ids else 0)


def _id_of_row(path: Path, line: int, row: dict[str, object], identifier: str) -> str:
    """Return the id of a row as text, "" where it is null or missing; raises CorpusError for other types."""
    value = row.get(identifier)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return id_of_number(value)
    raise _wrong_type(path, line, identifier, value, "a string or a number")


def _wrong_type(path: Path, line: int, column: str, value: object, expected: str) -> CorpusError:
    found = f"{JSON_TYPES[type(value)]} in the column {column!r}"
    return corpus_error(path, f"line {line}", found, expected, "correct that line, or name another column")
