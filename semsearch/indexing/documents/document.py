"""What a reader of one format returns: a document's text, and where its headings and blocks are in it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from semsearch.indexing.documents.lines import SourceLines
from semsearch.indexing.documents.looks import Looks
from semsearch.indexing.documents.markup import EditedText, Markup


class UnreadableError(Exception):
    """A document without a text that can be read. The message is the reason, such as "encrypted"."""


class NoTextError(UnreadableError):
    """A document that was read and has no text."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at the characters start to end of a part's text.

    A heading without a text ends the sections of its level and below: what follows belongs to the section around them.
    """

    start: int
    end: int
    level: int  # 1 is the highest
    text: str
    anchor: str  # "" if it has none


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, a block of code or a table: the characters start to end, without blanks around them."""

    start: int
    end: int
    parts: tuple["Block", ...] = ()  # rows or items, between which a block that is too long is divided
    header: str = ""  # the header of a table, embedded again with the rows after a division
    anchor: str = ""  # the anchor at its beginning, "" if it has none
    is_entry: bool = False  # whether it begins with the words of its anchor: it then begins a passage


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A page of a PDF, or all of another document."""

    text: str
    blocks: list[Heading | Block]
    offset: int = 0  # characters of the document before this part
    page: int | None = None  # from 1
    markup: Markup | None = None  # the markup of the text; None for a plain text
    edited: EditedText | None = None  # where the text is in the file, if it was edited
    lines: SourceLines | None = None  # the lines of the file; None if its format has none


@dataclass(frozen=True, slots=True)
class Document:
    """A document. A section can continue in the next part."""

    title: str
    parts: Iterable[DocumentPart]
    fields: dict[str, object] = field(default_factory=dict)  # metadata in the front matter
    running_lines: int = 0  # lines left out because they repeat at the edges of pages
    problem: str = ""  # what of it could not be read
    canonical: str = ""  # the address that a page states
    unlisted: str = ""  # why it is not to be found, such as "noindex"
    looks: Looks = field(default_factory=dict)  # what its reader looked at beside its file


def trimmed(text: str, start: int, end: int, parts: tuple[Block, ...] = (), header: str = "") -> list[Block]:
    """Return the block at these characters without the blanks around it, no block if there are only blanks."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        return [Block(start, end, parts, header)]
    return []


DEFINITION = re.compile(r"(?:\A|\n[ \t]*\r?\n)(?=[^\s})\]])")  # a line of code without indentation, after an empty line


def code_parts(text: str, start: int, end: int) -> tuple[Block, ...]:
    """Return the parts of code, such as functions and classes, between which it is divided if it is too long.

    In most languages each begins without indentation after an empty line.
    """
    begins = [start, *(found.end() for found in DEFINITION.finditer(text, start, end)), end]
    return tuple(part for bounds in pairwise(begins) for part in trimmed(text, *bounds))


def decode(content: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark. Raises UnreadableError for others."""
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8: {error.reason} at byte {error.start}") from error


def valid_unicode(text: str) -> str:
    r"""Return a text with each pair of surrogates, which YAML and JSON can escape as "\ud83e\udd86", as one
    character.

    Other surrogates, which UTF-8 does not have, are replaced by U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
