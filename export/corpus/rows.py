"""From the rows of CSV or JSON lines to passages."""

from collections.abc import Callable, Iterator
from pathlib import Path

from export.corpus.columns import find_id_column, find_text_column
from export.corpus.corpus import Corpus, CorpusError, corpus_error
from export.corpus.json_rows import compact_json

JSON_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}

Rows = Iterator[tuple[int, dict[str, object]]]  # the line that each starts on, from 1; its columns


def collect_rows(path: Path, rows: Callable[[], Rows], text_column: str | None, id_column: str | None) -> Corpus:
    """Return the passages of a file read row by row; rows() starts from the first row."""
    wanted = {text_column or "text"} | ({id_column} if id_column is not None else set())
    columns: dict[str, None] = {}
    for _, row in rows():
        columns.update(dict.fromkeys(row))
        if wanted <= columns.keys():
            break  # nearly always after the first row
    if not columns:
        remedy = "check that the file was written completely"
        raise corpus_error(path, None, "no rows", "at least one row with a column", remedy)
    text = find_text_column(path, columns, text_column)
    identifier = find_id_column(path, columns, text, id_column)

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
        metadata.append(compact_json(others))
    return Corpus(texts, ids, metadata, empty_texts=number + 1 - len(texts))


def _id_of_row(path: Path, line: int, row: dict[str, object], identifier: str | None, number: int) -> str:
    value = row.get(identifier) if identifier is not None else None
    if isinstance(value, list | dict):
        raise _wrong_type(path, line, str(identifier), value, "a string or a number")
    value_as_text = value if isinstance(value, str) else "" if value is None else compact_json(value)
    return value_as_text if value_as_text.strip() else str(number)


def _wrong_type(path: Path, line: int, column: str, value: object, expected: str) -> CorpusError:
    found = f"{JSON_TYPES[type(value)]} in the column {column!r}"
    return corpus_error(path, f"line {line}", found, expected, "correct that line, or name another column")
