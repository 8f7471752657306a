"""Which column of a file holds the texts, and which the ids."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from export.corpus.corpus import corpus_error


@dataclass(frozen=True, slots=True)
class RequestedColumns:
    """The columns to read, None for the usual names; text_option is the option of the text column, for messages."""

    text: str | None
    id: str | None
    has_ids: bool = True  # False: ids are not read, and a column called id is like any other
    text_option: str = "--text-column"


def require_names(path: Path, place: str, columns: Collection[str]) -> None:
    """Raise CorpusError if a column's name is empty or blank, because no request could name it."""
    if any(not column.strip() for column in columns):
        remedy = "name it, or leave the column out (pandas: to_csv(..., index=False))"
        raise corpus_error(path, place, "a column without a name", "a name for each", remedy)


def find_text_column(path: Path, columns: Collection[str], requested: RequestedColumns) -> str:
    """Return the column that holds the text: the requested one, else "text", else the only one.

    Raises CorpusError if there is no such column.
    """
    if requested.text is not None:
        require_column(path, columns, requested.text, requested.text_option)
        return requested.text
    if "text" in columns:
        return "text"
    if len(columns) == 1:
        return next(iter(columns))
    found = f"the columns {_listed(columns)}"
    raise corpus_error(path, None, found, "one named 'text'", f"name the one to embed with {requested.text_option}")


def find_id_column(path: Path, columns: Collection[str], text: str, requested: RequestedColumns) -> str | None:
    """Return the column that holds the ids; raises CorpusError if the requested one is missing.

    If none was requested, it is "id" even if columns lacks it: later rows can have keys that the first rows lack.
    """
    if requested.id is not None:
        require_column(path, columns, requested.id, "--id-column")
        return requested.id
    return "id" if requested.has_ids and text != "id" else None


def require_column(path: Path, columns: Collection[str], requested: str, option: str) -> None:
    """Raise CorpusError, which names the option and suggests the most similar name, if a column is missing."""
    if requested not in columns:
        by_lower = {column.lower(): column for column in columns}
        close = get_close_matches(requested.lower(), by_lower, n=1)
        remedy = f"did you mean {option} {by_lower[close[0]]!r}?" if close else f"name another with {option}"
        raise corpus_error(path, None, f"the columns {_listed(columns)}", f"a column {requested!r}", remedy)


def _listed(columns: Collection[str]) -> str:
    return ", ".join(repr(column) for column in columns) or "(none)"


EXACT_FLOATS = 2**53  # up to here a float holds every whole number (IEEE 754, 53 bits of significand)


def id_of_number(number: float) -> str:
    """Return a number, int or float, as an id. Whole numbers get no decimal point: 1, 1.0 and "1" are the same id."""
    if isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS:
        return str(int(number))
    return str(number)
