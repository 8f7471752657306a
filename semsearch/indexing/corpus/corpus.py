"""The corpus, and the error for a file that is not one."""

import json
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.engine.errors import ExpectedError
from semsearch.indexing.digests import count_distinct
from semsearch.indexing.facts import Facts

READ = "read texts"  # the step that reports its progress while a corpus is read


class PassageRow(NamedTuple):
    """A text on its way into an index: see `Corpus`."""

    text: str
    id: str
    metadata: str  # a JSON object
    source: str = ""  # the text with its Markdown, if that differs


PassageRows = Generator[PassageRow, None, None]


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
    heading_prefix: bool = False  # whether texts are read after the path of their headings: see PrefixedTexts
    has_ids: bool = field(default=True, compare=False)  # whether a column has the ids; otherwise they are row numbers
    is_csv: bool = field(default=False, compare=False)  # whether the source has only strings
    rows: Sequence[int] = field(default=(), compare=False)  # the row of each passage, if a table was not split
    facts: Facts = field(default_factory=dict, compare=False)  # of the values of the metadata
    columns: dict[str, str] = field(default_factory=dict)  # types of the metadata columns (`choose_types`)
    # columns of strings that are all numbers; those of a CSV have the type number, unless another one was chosen
    numeric_strings: tuple[str, ...] = ()
    mixed: dict[str, str] = field(default_factory=dict)  # a warning for each column with values of several types

    @property
    def embedded_texts(self) -> Collection[str]:
        """Return the texts as the model reads them."""
        if self.heading_prefix:
            return PrefixedTexts(self.texts, self.metadata, self.sources)
        return self.texts

    @property
    def keyword_texts(self) -> Collection[str]:
        """Return the texts as keyword search reads them."""
        if self.heading_prefix:
            return PrefixedTexts(self.texts, self.metadata)
        return self.texts

    @property
    def repeated_ids(self) -> int:
        """Return how many passages have the id of an earlier one."""
        return len(self.ids) - count_distinct(self.ids)


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


class PrefixedTexts(Collection[str]):
    """The texts of passages with their prefixes, made when they are used."""

    def __init__(self, texts: Sequence[str], metadata: Sequence[str], sources: Sequence[str] | None = None) -> None:
        """Take the JSON of each passage as metadata. A source that is not empty takes the place of its text."""
        self._texts, self._metadata, self._sources = texts, metadata, sources

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        sources = self._sources or repeat("", len(self._texts))
        for text, metadata, source in zip(self._texts, self._metadata, sources, strict=True):
            yield heading_prefix(json.loads(metadata)) + (source or text)

    def __contains__(self, text: object) -> bool:
        return any(text == each for each in self)
