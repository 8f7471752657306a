"""From the headings and blocks of a document to its passages.

A passage is a piece of one section. Only sections that are too small to be found alone, and follow one another under
the same heading, become one passage, with their headings in its text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tokenizers import Tokenizer

from semsearch.engine.bundle import ModelInfo
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading, paragraphs, trimmed

PASSAGE_TOKENS = 200
MOST_CHARACTERS = 32  # characters of a token, at most; a text with more is divided without counting its tokens
SENTENCE_CHARACTERS = 100_000  # characters that are divided into sentences at a time
SPACED_WORD = re.compile(r"\S+")

SizedSpan = tuple[int, int, int, str]  # start, end, tokens, table header
TextSpan = tuple[int, int, str]  # start, end, table header


class Splitter:
    """The tokenizer of a model, and the number of tokens of a passage."""

    def __init__(self, tokenizer: Tokenizer, model: ModelInfo, passage_tokens: int, overlap: int) -> None:
        """Take the tokenizer of a bundle. Of passage_tokens, `overlap` repeat the end of the passage before."""
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._room = model.max_tokens - tokenizer.num_special_tokens_to_add(False)
        self._room -= self.count(model.prompts.get("document", ""))
        self.passage_tokens = passage_tokens
        self._overlap = overlap

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def fits(self, text: str, start: int, end: int, tokens: int) -> bool:
        """Return whether a piece of a text has at most this number of tokens."""
        return end - start <= tokens * MOST_CHARACTERS and self.count(text[start:end]) <= tokens

    def divide(self, text: str, blocks: Iterable[Block], prefix: str) -> Iterator[TextSpan]:
        """Yield the ranges of the passages of one section: blocks together as long as they fit with the prefix.

        A prefix that leaves no room gets half of what the model reads; its texts are then truncated.
        """
        room = min(self.passage_tokens, max(self._room - self.count(prefix), self._room // 2, 1))
        budget = max(room - self._overlap, 1)
        begin = start = end = used = 0
        header = ""
        for first, last, tokens, table in self._pieces(text, blocks, budget):
            if end and used + tokens > budget:
                yield self._overlapping(text, begin, start), end, header
                start, header, used = first, table, self.count(table)
            elif not end:
                begin = start = first
            end, used = last, used + tokens
        if end:
            yield self._overlapping(text, begin, start), end, header

    def split(self, text: str) -> list[tuple[int, int]]:
        """Return the ranges of the passages of a text without headings."""
        return [(start, end) for start, end, _ in self.divide(text, paragraphs(text), "")]

    def _pieces(self, text: str, blocks: Iterable[Block], budget: int, header: str = "") -> Iterator[SizedSpan]:
        import semchunk

        for place, block in enumerate(blocks):
            own = ""
            if place:
                own = header
            if self.fits(text, block.start, block.end, budget):
                yield block.start, block.end, self.count(text[block.start : block.end]), own
            elif block.parts:
                room = max(budget - self.count(block.header), budget // 2, 1)
                yield from self._pieces(text, block.parts, room, block.header)
            else:
                begin = block.start
                while begin < block.end:
                    end = min(begin + SENTENCE_CHARACTERS, block.end)
                    if end < block.end:  # at a blank, if there is one
                        end = (
                            max(text.rfind(blank, begin + SENTENCE_CHARACTERS // 2, end) for blank in "\n ") + 1 or end
                        )
                    _, ranges = semchunk.chunk(text[begin:end], budget, self.count, memoize=False, offsets=True)
                    for first, last in ranges:
                        for piece in trimmed(text, begin + first, begin + last):
                            yield piece.start, piece.end, self.count(text[piece.start : piece.end]), own
                    begin = end

    def _overlapping(self, text: str, begin: int, start: int) -> int:
        """Return where a passage begins that repeats the last words before `start`, in a section from `begin` on."""
        found = start
        least = max(begin, start - self._overlap * MOST_CHARACTERS)
        for word in reversed(list(SPACED_WORD.finditer(text, least, start))):
            if self.count(text[word.start() : start]) > self._overlap:
                break
            found = word.start()
        return found


SMALL = 8  # a section with fewer than 1 / SMALL of a passage's tokens is small


@dataclass(frozen=True, slots=True)
class DocumentPassage:
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
    heading: Heading | None
    path: tuple[str, ...] = ()
    anchor: str = ""
    blocks: list[Block] = field(default_factory=list)
    children: list["_Section"] = field(default_factory=list)

    @property
    def start(self) -> int:
        if self.heading is None:
            return self.blocks[0].start
        return self.heading.start

    @property
    def end(self) -> int:
        last = (self.children or self.blocks or [self.heading])[-1]
        if last is None:
            return 0
        return last.end


def divide(document: Document, splitter: Splitter) -> Iterator[DocumentPassage]:
    """Yield the passages of a document in order. No passage is longer than a part, such as a page."""
    path: list[Heading] = []
    for part in document.parts:
        root, path = _sections(part, path)
        for text, section, anchor, table in _divide(part, root, splitter, document.title):
            for block in trimmed(part.text, text.start, text.stop):
                start, end = part.offset + block.start, part.offset + block.end
                words = part.text[block.start : block.end]
                yield DocumentPassage(words, start, end, section.path, anchor, part.page, table)


def _sections(part: DocumentPart, path: list[Heading]) -> tuple[_Section, list[Heading]]:
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


FoundPassage = tuple[range, _Section, str, str]  # characters, section, anchor, table header


def _divide(part: DocumentPart, section: _Section, splitter: Splitter, title: str) -> Iterator[FoundPassage]:
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
