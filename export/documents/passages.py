"""From the headings and blocks of a document to its passages.

A passage is a piece of one section. Only sections that are too small to be found alone, and follow one another under
the same heading, become one passage, with their headings in its text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from export.corpus.embedded import heading_prefix
from export.documents.document import Block, Document, Heading, Part, trimmed
from export.documents.splitter import Splitter

SMALL = 8  # a section with fewer than 1 / SMALL of a passage's tokens is small


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document: start and end count the characters of the document's text."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...]  # from the highest to the section's own
    anchor: str  # anchor of the section, or of the nearest one around it that has any
    page: int | None
    table: str  # the header of the table that the passage continues


@dataclass(slots=True)
class _Section:
    """A section: what follows its heading, then the sections below it."""

    heading: Heading | None
    path: tuple[str, ...] = ()
    anchor: str = ""
    blocks: list[Block] = field(default_factory=list)
    children: list["_Section"] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.blocks[0].start if self.heading is None else self.heading.start

    @property
    def end(self) -> int:
        last = (self.children or self.blocks or [self.heading])[-1]
        return 0 if last is None else last.end


def divide(document: Document, splitter: Splitter) -> Iterator[Passage]:
    """Yield the passages of a document in order. No passage is longer than a part, such as a page."""
    path: list[Heading] = []
    for part in document.parts:
        root, path = _sections(part, path)
        for text, section, anchor, table in _divide(part, root, splitter, document.title):
            for block in trimmed(part.text, text.start, text.stop):
                start, end = part.offset + block.start, part.offset + block.end
                words = part.text[block.start : block.end]
                yield Passage(words, start, end, section.path, anchor, part.page, table)


def _sections(part: Part, path: list[Heading]) -> tuple[_Section, list[Heading]]:
    """Return the tree of a part's sections, and the open headings at its end; `path` has those at its beginning."""
    opened = [root := _Section(None)]
    for block in [*(Heading(0, 0, each.level, each.text, each.anchor) for each in path), *part.blocks]:
        if isinstance(block, Block):
            opened[-1].blocks.append(block)
            continue
        while (above := opened[-1].heading) is not None and above.level >= block.level:
            opened.pop()
        around = opened[-1]
        named = (block.text,) if block.text else ()
        opened.append(_Section(block, around.path + named, block.anchor or around.anchor))
        around.children.append(opened[-1])
    return root, [section.heading for section in opened if section.heading is not None]


Found = tuple[range, _Section, str, str]  # characters, section, anchor, table header


def _divide(part: Part, section: _Section, splitter: Splitter, title: str) -> Iterator[Found]:
    """Yield the passages of a section and of those below it."""
    children = [each for each in section.children if each.start != each.end]
    if not children:
        blocks = section.blocks
        if not blocks and section.heading and part.page is None:  # in a PDF, the next page can have its text
            blocks = trimmed(part.text, section.start, section.end)
        prefix = heading_prefix({"title": title, "headings": section.path})
        for start, end, table in splitter.divide(part.text, blocks, prefix):
            yield range(start, end), section, section.anchor, table
        return
    own = _Section(None, section.path, section.anchor, section.blocks)
    runs: list[list[_Section]] = []  # small sections that are one passage together, or one section
    last_is_small = False
    for one in [*([own] if section.blocks else []), *children]:
        is_small = splitter.fits(part.text, one.start, one.end, splitter.passage_tokens // SMALL)
        if last_is_small and is_small and splitter.fits(part.text, runs[-1][0].start, one.end, splitter.passage_tokens):
            runs[-1].append(one)
        else:
            runs.append([one])
        last_is_small = is_small
    for run in runs:
        if len(run) == 1:
            yield from _divide(part, run[0], splitter, title)
        else:
            yield range(run[0].start, run[-1].end), section, run[0].anchor, ""
