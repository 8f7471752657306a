"""The corpus, and the error for a file that is not one."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export.corpus.digests import count_distinct
from export.corpus.embedded import EmbeddedTexts

Append = Callable[[str, str, str], object]  # takes the text, the id and the metadata of a passage
READ = "read texts"  # the step that reports its progress while a corpus is read


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of passages in a file, and what else was found in it: see `Corpus`."""

    passages: int
    empty_texts: int
    blank_ids: int
    non_finite: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Entries of a folder that were skipped for one reason: their number, and one path relative to the folder."""

    reason: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count:,} skipped: {self.reason}, such as {self.example}"


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
    empty_texts: int  # rows skipped because their text was empty, blank or null
    blank_ids: int = 0  # passages whose row number is their id, although the file has a column of ids
    non_finite: int = 0  # values that are NaN or infinite, which JSON cannot hold
    files: int = 1
    skipped: tuple[Skipped, ...] = ()  # entries of the folder, if the corpus is one
    columns: dict[str, str] = field(default_factory=dict)  # types of the metadata columns: see export/index/columns.py
    numeric_strings: tuple[str, ...] = ()  # columns of strings that are all numbers
    split_texts: int = 0  # texts of a table that are more than one passage
    documents: dict[str, int] = field(default_factory=dict)  # number of documents of each format; none for tables
    unreadable: tuple[str, ...] = ()  # documents that were left out, each with its path and the reason
    incomplete: tuple[str, ...] = ()  # documents of which a part was left out, each with its path and the reason
    running_lines: int = 0  # lines of PDFs that were left out because they repeat at the edges of pages
    options: dict[str, Any] = field(default_factory=dict)  # those of the export that an update uses again
    heading_prefix: bool = False  # whether texts are embedded after the path of their headings: see embedded.py

    @property
    def embedded_texts(self) -> Collection[str]:
        """Return the texts as the model and keyword search read them."""
        return EmbeddedTexts(self.texts, self.metadata) if self.heading_prefix else self.texts

    @property
    def repeated_ids(self) -> int:
        """Return how many passages have the id of an earlier one."""
        return len(self.ids) - count_distinct(self.ids)


class CorpusError(ValueError):
    """A corpus that cannot be read: the message says where, what was found, what was expected and what to do."""


def corpus_error(path: Path, place: str | None, found: str, expected: str, remedy: str) -> CorpusError:
    """Return the error whose message has these four parts; place is "line 7" or the like, if it is known."""
    where = str(path) if place is None else f"{path}, {place}"
    return CorpusError(f"{where}: found {found}, expected {expected}; {remedy}")
