"""The corpus, and the error for a file that is not one."""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.engine.errors import ExpectedError
from semsearch.engine.passages import NO_LINES, Lines
from semsearch.indexing.digests import Positions
from semsearch.indexing.facts import Facts

READ = "read texts"  # the step that reports its progress while a corpus is read


class PassageRow(NamedTuple):
    """A text on its way into an index: see `Corpus`."""

    text: str
    id: str
    metadata: str  # a JSON object
    source: str = ""  # the text with its Markdown, if that differs
    lines: Lines = NO_LINES  # the lines of its file that have it

    @property
    def strings(self) -> tuple[str, str, str, str]:
        """Its text, id, metadata and source: what an update compares. A text that has only moved is the same."""
        return self[:4]


class OlderRows(NamedTuple):
    """Rows of the older index that stay as they are: those from `begin` on and before `end`."""

    begin: int
    end: int


PassageRows = Generator[PassageRow, None, None]
ChangedRows = Generator[PassageRow | OlderRows, None, None]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages ready to embed: texts, ids and metadata have one entry for each passage, in the file's order.

    They are lists, or columns of a passages.safetensors, which reads them when they are used.

    A row is any record of the source, counted from 0; blank lines are not rows. Ids may repeat.
    Metadata leaves out columns that are null in that row; an empty CSV field counts as null, and so does a
    number that is NaN or infinite.
    """

    texts: Sequence[str]  # never empty or blank, otherwise exactly as in the file
    ids: Sequence[str]  # the id column as text; the row number where the id is missing or blank
    metadata: Sequence[str]  # a compact JSON object of the other columns, "{}" when there are none
    sources: Sequence[str] | None = None  # the texts with their markup, "" for one without; None if no text has any
    heading_prefix: bool = False  # whether texts are read after the path of their headings: see `texts_for_model`
    has_ids: bool = field(default=True, compare=False)  # whether a column has the ids; otherwise they are row numbers
    is_csv: bool = field(default=False, compare=False)  # whether the source has only strings
    rows: Sequence[int] = field(default=(), compare=False)  # the rows of a table that have a text, divided or not
    # (rows,): the row of the older index that each one is, with its text, id, metadata and source; -1 for a new one.
    # No older row occurs twice. None if all are new.
    older_rows: Positions | None = field(default=None, compare=False)
    facts: Facts = field(default_factory=dict, compare=False)  # facts of the values of the metadata
    columns: dict[str, str] = field(default_factory=dict)  # types of the metadata columns (`choose_types`)
    # columns of strings that are all numbers; those of a CSV have the type number, unless another one was chosen
    numeric_strings: tuple[str, ...] = ()
    mixed: dict[str, str] = field(default_factory=dict)  # a warning for each column with values of several types
    other_suffixes: dict[str, int] = field(default_factory=dict)  # files that are not read, as in the manifest


class CorpusError(ExpectedError, ValueError):
    """A corpus that cannot be read: the message says where, what was found, what was expected and what to do."""


def corpus_error(path: Path, place: str | None, found: str, expected: str, remedy: str) -> CorpusError:
    """Return the error whose message has these four parts; place is "line 7" or the like, if it is known."""
    where = str(path) if place is None else f"{path}, {place}"
    return CorpusError(f"{where}: found {found}, expected {expected}; {remedy}")


def require_unicode(path: Path, place: str, row: Mapping[str, object]) -> None:
    """Raise CorpusError, which names the column, if a row has half of a surrogate pair. JSON can escape one."""
    for column, value in row.items():
        try:
            json.dumps([column, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            found = f"half a surrogate pair in the column {column!r}"
            raise corpus_error(path, place, found, "valid Unicode", "correct that row") from error


PREFIX_CHARACTERS = 300  # maximum length of a path; the end of a longer one is kept, so that the text still fits


def heading_prefix(metadata: Mapping[str, Any]) -> str:
    """Return the prefix of a passage: a line with its title and headings, and one with its table's header."""
    path = list(metadata.get("headings", ()))
    if metadata.get("title") and metadata["title"] not in path[:1]:
        path.insert(0, metadata["title"])
    lines = [" > ".join(path)[-PREFIX_CHARACTERS:], metadata.get("table", "")]
    return "".join(f"{line}\n" for line in lines if line)
