"""Which column of a file holds the texts, and which the ids."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from semsearch.indexing.corpus.corpus import corpus_error


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How the columns of a table are read. The options of `index` of these names explain most fields."""

    text_column: str | None = None  # the names of several are apart by commas
    id_column: str | None = None
    separator: str | None = None
    decimal_comma: bool = False
    ignore: bool = True
    follow_symlinks: bool = False
    has_ids: bool = True  # False: ids are not read, and a column called id is like any other
    text_option: str = "--text-column"  # what messages call the option of the text column


def require_names(path: Path, place: str, columns: Collection[str]) -> None:
    """Raise CorpusError if a column's name is empty or blank, because no request could name it."""
    if any(not column.strip() for column in columns):
        remedy = "name it, or leave the column out (pandas: to_csv(..., index=False))"
        raise corpus_error(path, place, "a column without a name", "a name for each", remedy)


def text_names(requested: str, columns: Collection[str]) -> list[str]:
    """Return the names of the columns that hold the text; a column can have a comma in its name."""
    if requested in columns:
        return [requested]
    return requested.split(",")


def find_text_columns(path: Path, columns: Collection[str], table: TableOptions) -> list[str]:
    """Return the columns that hold the text: the requested ones, else "text", else the only one.

    Raises CorpusError if there is no such column, or if one is requested twice.
    """
    if table.text_column is not None:
        names = text_names(table.text_column, columns)
        for name in names:
            require_column(path, columns, name, table.text_option)
        if len({*names}) < len(names):
            found = f"{table.text_option} {table.text_column}"
            raise corpus_error(path, None, found, "each column once", "leave out the second one")
        return names
    if "text" in columns:
        return ["text"]
    if len(columns) == 1:
        return list(columns)
    found = f"the columns {_listed(columns)}"
    raise corpus_error(path, None, found, "one named 'text'", f"name the one to embed with {table.text_option}")


def find_id_column(path: Path, columns: Collection[str], texts: Collection[str], table: TableOptions) -> str | None:
    """Return the column that holds the ids; raises CorpusError if the requested one is missing.

    If none was requested, it is "id" even if columns lacks it: later rows can have keys that the first rows lack.
    """
    if table.id_column is not None:
        require_column(path, columns, table.id_column, "--id-column")
        return table.id_column
    if table.has_ids and "id" not in texts:
        return "id"
    return None


def require_column(path: Path, columns: Collection[str], requested: str, option: str) -> None:
    """Raise CorpusError, which names the option and suggests the most similar name, if a column is missing."""
    if requested not in columns:
        by_lower = {column.lower(): column for column in columns}
        close = get_close_matches(requested.lower(), by_lower, n=1)
        remedy = f"did you mean {option} {by_lower[close[0]]!r}?" if close else f"name another with {option}"
        raise corpus_error(path, None, f"the columns {_listed(columns)}", f"a column {requested!r}", remedy)


def _listed(columns: Collection[str]) -> str:
    return ", ".join(repr(column) for column in columns) or "(none)"
