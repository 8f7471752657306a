"""From the headings and blocks of a document to its passages.

A passage is a piece of one section. Only sections that are too small to be found, and follow one another under the same
heading, are one passage together, with their headings in its text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from export.corpus.embedded import heading_prefix
from export.documents.document import Block, Document, Heading, Part, trimmed
from export.documents.splitter import Splitter

SMALL = 8  # a section of fewer than 1 / SMALL of a passage's tokens is small


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document: start and end count the characters of the document's text."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...]  # from the highest to that of the section
    anchor: str  # of the section, or of the nearest one around it that has any
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
        yield from _Divider(document.title, part, splitter).divide(root)


def _sections(part: Part, path: list[Heading]) -> tuple[_Section, list[Heading]]:
    """Return the tree of a part's sections, and the headings that hold at its end; `path` holds at its beginning."""
    root = _Section(None)
    opened: list[tuple[Heading | None, _Section]] = [(None, root)]

    def open_section(heading: Heading) -> None:
        while (above := opened[-1][0]) is not None and above.level >= heading.level:
            opened.pop()
        around = opened[-1][1]
        named = (heading.text,) if heading.text else ()
        section = _Section(heading, around.path + named, heading.anchor or around.anchor)
        around.children.append(section)
        opened.append((heading, section))

    for heading in path:
        open_section(Heading(0, 0, heading.level, heading.text, heading.anchor))
    for block in part.blocks:
        if isinstance(block, Heading):
            open_section(block)
        else:
            opened[-1][1].blocks.append(block)
    return root, [heading for heading, _ in opened if heading is not None]


class _Divider:
    """Divides the sections of one part."""

    def __init__(self, title: str, part: Part, splitter: Splitter) -> None:
        self._title, self._part, self._splitter = title, part, splitter

    def divide(self, section: _Section) -> Iterator[Passage]:
        """Yield the passages of a section and of those below it."""
        if not section.children:
            prefix = heading_prefix({"title": self._title, "headings": section.path})
            for start, end, table in self._splitter.divide(self._part.text, section.blocks, prefix):
                yield self._passage(start, end, section.path, section.anchor, table)
            return
        own = _Section(None, section.path, section.anchor, section.blocks)
        run: list[_Section] = []
        for one in [*([own] if section.blocks else []), *section.children]:
            if one.start == one.end:
                continue
            is_small = self._fits(one.start, one.end, self._splitter.passage_tokens // SMALL)
            if run and not (is_small and self._fits(run[0].start, one.end, self._splitter.passage_tokens)):
                yield from self._together(section, run)
                run = []
            if is_small:
                run.append(one)
            else:
                yield from self.divide(one)
        if run:
            yield from self._together(section, run)

    def _together(self, section: _Section, run: list[_Section]) -> Iterator[Passage]:
        """Yield one passage for small sections below the same one; a small one alone stays what it is."""
        if len(run) == 1:
            yield from self.divide(run[0])
        else:
            yield self._passage(run[0].start, run[-1].end, section.path, run[0].anchor, "")

    def _fits(self, start: int, end: int, tokens: int) -> bool:
        return self._splitter.fits(self._part.text, start, end, tokens)

    def _passage(self, start: int, end: int, path: tuple[str, ...], anchor: str, table: str) -> Passage:
        block, offset = trimmed(self._part.text, start, end), self._part.offset
        assert block is not None  # a run of sections has a text
        text = self._part.text[block.start : block.end]
        return Passage(text, offset + block.start, offset + block.end, path, anchor, self._part.page, table)
