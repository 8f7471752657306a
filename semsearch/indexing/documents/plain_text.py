"""Read plain text, whose paragraphs are its blocks, and texts of other suffixes, such as programs."""

import re
from collections.abc import Iterator
from pathlib import Path

from semsearch.indexing.documents.document import (
    Block,
    Document,
    DocumentPart,
    UnreadableError,
    code_parts,
    decode,
    trimmed,
)
from semsearch.indexing.documents.lines import FileLines

BLANK_LINES = re.compile(r"\n[^\S\n]*\r?\n\s*|\f|\Z")


def read_plain(path: Path) -> Document:
    """Return a text file as a document, called by its name. Raises UnreadableError if it is not UTF-8."""
    text = decode(path.read_bytes())
    return Document(path.stem, [DocumentPart(text, list(paragraphs(text)), lines=FileLines(text))])


def read_other(path: Path) -> Document:
    """Return a text of any other suffix as a document, called by the name of its file and divided like code.

    Raises UnreadableError if it is not UTF-8, or has a NUL byte.
    """
    text = decode(path.read_bytes())
    if "\0" in text:
        raise UnreadableError("not text: it has NUL bytes")
    blocks = trimmed(text, 0, len(text), code_parts(text, 0, len(text)))
    return Document(path.name, [DocumentPart(text, [*blocks], lines=FileLines(text))])


def paragraphs(text: str, start: int = 0) -> Iterator[Block]:
    """Yield the paragraphs of a text from the character `start` on."""
    for gap in BLANK_LINES.finditer(text, start):
        yield from trimmed(text, start, gap.start())
        start = gap.end()
