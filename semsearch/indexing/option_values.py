"""The values that options of `index` can have, for its signature.

Each function takes the value of an option, and returns it in the form that a manifest records: JSON, and None for an
empty name. Raises ValueError, which says what was found and what was expected, for a value that the option cannot have.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from Stemmer import algorithms

from semsearch.engine.bundle import NO_STEMS
from semsearch.indexing.columns import COLUMN_TYPES
from semsearch.indexing.synonyms import Synonyms, read_synonyms

LONGEST_LINE = 1_000  # maximum characters of title and description
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def at_least(least: int) -> Callable[[int | None], int | None]:
    """Return what refuses smaller numbers."""

    def refuse_smaller(value: int | None) -> int | None:
        if value is not None and value < least:
            raise ValueError(f"found {value}, expected {least} or more")
        return value

    return refuse_smaller


def share(value: float | None) -> float | None:
    """Refuse numbers that are not from 0 to 1."""
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"found {value}, expected a number from 0 to 1")
    return value


def seconds(value: float) -> float:
    """Refuse negative numbers and NaN."""
    if not value >= 0:
        raise ValueError(f"found {value}, expected 0 or more seconds")
    return value


def one_line(value: str) -> str:
    """Remove blanks around a line; refuse several lines and a long one."""
    value = value.strip()
    if not value.isprintable() or len(value) > LONGEST_LINE:
        raise ValueError(f"found {value[:60]!r}, expected one line of at most {LONGEST_LINE} characters")
    return value


def one_name(value: str | None) -> str | None:
    """Remove blanks around a name; refuse an empty one, several lines and a long one."""
    if value is None:
        return None
    if not value.strip():
        raise ValueError(f"found {value!r}, expected a name, such as openai/text-embedding-3-small")
    return one_line(value)


def one_character(value: str | None) -> str | None:
    """Refuse what cannot separate the fields of a CSV."""
    if value is not None and (len(value) != 1 or value in '"\r\n'):
        raise ValueError(f"found {value!r}, expected one character, such as ';'")
    return value


def path(value: str | Path | None) -> Path | None:
    """Return a place as a path."""
    return None if value is None else Path(value)


def name(value: str | None) -> str | None:
    """Return None for the empty name of a column."""
    return value or None


def column_names(value: str | Sequence[str] | None) -> str | None:
    """Return the names of columns with commas between them, None for none."""
    if value is None or isinstance(value, str):
        return value or None
    if len(value) > 1 and any("," in column for column in value):
        raise ValueError(f"found {list(value)!r}, expected names without a comma, or one; rename the column")
    return ",".join(value) or None


def column_types(value: Mapping[str, str] | None) -> dict[str, str]:
    """Return the types of columns; refuse types that no column has."""
    for column, kind in (value or {}).items():
        if not column or kind not in COLUMN_TYPES:
            raise ValueError(f"found {column}={kind}, expected a type of {', '.join(COLUMN_TYPES)}")
    return dict(value or {})


def lines_by_name(value: Mapping[str, str] | None) -> dict[str, str]:
    """Return names with a line each, as `one_line` returns it; leave out names without one."""
    lines = {name: one_line(line) for name, line in (value or {}).items()}
    return {name: line for name, line in lines.items() if line}


def mapping(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a mapping as a dict."""
    return dict(value or {})


def stem_language(value: str | None) -> str | None:
    """Refuse languages without stems."""
    if value not in (None, NO_STEMS, *algorithms()):
        raise ValueError(f"found {value!r}, expected one of {', '.join([NO_STEMS, *algorithms()])}")
    return value


def synonyms(value: str | Path | Synonyms | None) -> Synonyms | None:
    """Return the words of a file of synonyms, or those that are stated; None for none."""
    if not isinstance(value, str | Path):
        return value or None
    if not str(value):
        return None
    try:
        return read_synonyms(Path(value)) or None
    except (OSError, ValueError) as error:
        raise ValueError(f"{value}: {error}") from error


def device(value: str) -> str:
    """Refuse names that PyTorch gives no device."""
    if not DEVICE.fullmatch(value):
        raise ValueError(f"found {value!r}, expected auto, cpu, mps, cuda, or one GPU such as cuda:1")
    return value
