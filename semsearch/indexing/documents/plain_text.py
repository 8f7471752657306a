"""Read plain text: its paragraphs are its blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

from semsearch.indexing.documents.document import Block, Document, DocumentPart, decode, trimmed
from semsearch.indexing.documents.lines import FileLines

BLANK_LINES = re.compile(r"\n[^\S\n]*\r?\n\s*|\f|\Z")


def read_plain(path: Path) -> Document:
    """Return a text file as a document, called by its name. Raises UnreadableError if it is not UTF-8."""
    text = decode(path.read_bytes())
    return Document(path.stem, [DocumentPart(text, list(paragraphs(text)), lines=FileLines(text))])


def paragraphs(text: str, start: int = 0) -> Iterator[Block]:
    """Yield the paragraphs of a text from the character `start` on."""
    for gap in BLANK_LINES.finditer(text, start):
        yield from trimmed(text, start, gap.start())
        start = gap.end()
