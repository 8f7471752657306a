"""From the rows of a table to passages."""

import math
from collections.abc import Callable
from datetime import date, time
from pathlib import Path

from export.corpus.columns import Columns, find_id_column, find_text_column, require_names
from export.corpus.corpus import Append, CorpusError, Counts, corpus_error
from export.corpus.formats import Rows, compact_json
from export.corpus.ids import Ids, id_of_number
from export.progress import OnProgress, no_progress

ReadRows = Callable[[OnProgress], Rows]  # reads a file from its first row on


def read_rows(
    path: Path,
    rows: ReadRows,
    place: str,
    requested: Columns,
    append: Append,
    ids: Ids,
    rows_before: int,
    on_progress: OnProgress,
) -> Counts:
    """Append the passages of a table.

    place describes the number of a row for messages, such as "line {}". `ids` has the ids of the files before it, and
    rows_before is the number of its first row.
    Raises CorpusError for texts and ids that are not text, and for values that JSON cannot hold.
    """
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

    ids.begin(path, place.format)
    passages = count = non_finite = 0
    has_ids, known = False, set[str]()

    def plain(value: object) -> object:
        """Return a value as JSON can hold it; NaN and infinity, which it cannot, are counted and become null."""
        nonlocal non_finite
        if value is None or isinstance(value, str | int):
            return value
        if isinstance(value, float):
            non_finite += not math.isfinite(value)
            return value if math.isfinite(value) else None
        if isinstance(value, list):
            return list(map(plain, value))
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, bytes):
            found = f"bytes in the row {row!r:.80}"
            raise corpus_error(path, place.format(number), found, "values that JSON can hold", "leave the column out")
        return value.isoformat() if isinstance(value, date | time) else str(value)

    for count, (number, row) in enumerate(rows(on_progress), 1):
        if not row.keys() <= known:
            require_names(path, place.format(number), row, "name it, or leave it out")
            known |= row.keys()
        has_ids = has_ids or identifier in row
        passage = row.get(text)
        if passage is None or (isinstance(passage, str) and not passage.strip()):
            continue
        if not isinstance(passage, str):
            raise _wrong_type(path, place.format(number), text, passage, "a string")
        name = "" if identifier is None else _id_of_row(path, place.format(number), row, identifier)
        others = {key: plain(row[key]) for key in row if key not in (text, identifier)}
        metadata = compact_json({key: value for key, value in others.items() if value is not None})
        append(passage, ids.replace_blank(name, rows_before + count - 1, number), metadata)
        passages += 1
    blank_ids = ids.count_blank()
    return Counts(passages, count - passages, blank_ids if has_ids else 0, non_finite)


def _id_of_row(path: Path, place: str, row: dict[str, object], identifier: str) -> str:
    """Return the id of a row as text, "" where it is null, NaN or missing; raises CorpusError for other types."""
    value = row.get(identifier)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and not math.isfinite(value):  # pandas stores whole numbers beside a blank as floats
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return id_of_number(value)
    if isinstance(value, bool | bytes | list | dict):
        raise _wrong_type(path, place, identifier, value, "a string or a number")
    return str(value)


def _wrong_type(path: Path, place: str, column: str, value: object, expected: str) -> CorpusError:
    found = f"{value!r:.40} in the column {column!r}"
    return corpus_error(path, place, found, expected, "correct that row, or name another column")
