"""From the headings and blocks of a document to its passages: pieces of one section each."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tokenizers import Tokenizer

from semsearch.engine.bundle import ModelInfo
from semsearch.engine.passages import NO_LINES, Lines
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading, trimmed
from semsearch.indexing.documents.plain_text import paragraphs

PASSAGE_TOKENS = 200
MOST_CHARACTERS = 32  # characters of a token, at most; a text with more is divided without counting its tokens
SENTENCE_CHARACTERS = 100_000  # characters that are divided into sentences at a time
SPACED_WORD = re.compile(r"\S+")

SizedSpan = tuple[int, int, int, str]  # start, end, tokens, table header
TextSpan = tuple[int, int, str]  # start, end, table header


class Splitter:
    """The tokenizer of a model, and the number of tokens of a passage."""

    def __init__(
        self, tokenizer: Tokenizer, model: ModelInfo, passage_tokens: int, overlap: int, tokenizer_sha256: str = ""
    ) -> None:
        """Take the tokenizer of a bundle, and the checksum of its file.

        Of passage_tokens, `overlap` repeat the end of the passage before.
        """
        self.tokenizer_sha256: str = tokenizer_sha256
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._room = model.max_tokens - tokenizer.num_special_tokens_to_add(False)
        self._room -= self.count(model.prompts.get("document", ""))
        self.passage_tokens = passage_tokens
        self._overlap = overlap

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return the numbers of tokens that decide how a text is divided."""
        return self._room, self.passage_tokens, self._overlap

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
                import semchunk  # it imports tqdm, and a document without a long block needs neither

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


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A passage of a document: start and end count the characters of the document's text."""

    text: str  # plain text
    start: int
    end: int
    headings: tuple[str, ...]  # from the highest to the section's own
    anchor: str  # anchor of the section, or of the nearest one around it that has any
    page: int | None
    table: str  # the header of the table that the passage continues
    source: str = ""  # the text with its markup, as the model reads it, if it has any
    lines: Lines = NO_LINES  # the lines of the file from its first word to its last one


@dataclass(slots=True)
class _Section:
    """A heading and what follows it up to the next one. It can go on after sections below it."""

    path: tuple[Heading, ...]  # from the highest to the section's own; empty before the first heading
    blocks: list[Block] = field(default_factory=list)

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(heading.text for heading in self.path)

    @property
    def anchor(self) -> str:
        """Return the anchor of the section, or of the nearest one around it that has any."""
        return next((heading.anchor for heading in reversed(self.path) if heading.anchor), "")


def divide(document: Document, splitter: Splitter) -> Iterator[DocumentPassage]:
    """Yield the passages of a document in order. No passage is longer than a part, such as a page."""
    path: list[Heading] = []  # the open headings
    for part in document.parts:
        sections = list(_sections(part, path))
        if part.page is None:  # in a PDF, the next page can have the text of a heading
            _add_headings_alone(part, sections)
        for section in sections:
            prefix = heading_prefix({"title": document.title, "headings": section.headings})
            for start, end, table in splitter.divide(part.text, section.blocks, prefix):
                for block in trimmed(part.text, start, end):
                    passage = _passage(part, section, block, table)
                    if passage.text:  # it can be marks alone
                        yield passage


def _sections(part: DocumentPart, path: list[Heading]) -> Iterator[_Section]:
    """Yield the sections of a part; `path` has the open headings at its beginning, and at its end."""
    section = _Section(tuple(path))
    for block in part.blocks:
        if isinstance(block, Block):
            section.blocks.append(block)
            continue
        yield section
        while path and path[-1].level >= block.level:
            path.pop()
        if block.text:
            path.append(block)
        section = _Section(tuple(path))
    yield section


def _add_headings_alone(part: DocumentPart, sections: Iterable[_Section]) -> None:
    """Make a heading that no text follows directly a text itself, so that it is found by its words.

    Its section can go on after sections below it. So each section begins where its heading is.
    """
    begun: set[tuple[Heading, ...]] = set()
    for section in sections:
        heading = section.path[-1:]
        if heading and heading not in begun and not section.blocks:
            section.blocks += trimmed(part.text, heading[0].start, heading[0].end)
        begun.add(heading)


def _passage(part: DocumentPart, section: _Section, block: Block, table: str) -> DocumentPassage:
    start, end = block.start, block.end
    text, source = part.text[start:end], ""
    first, last, lines = start, end, None
    if part.markup is not None:
        first, last = part.markup.words(start, end)
        source = part.markup.read_by_model(start, end)
        text = part.markup.plain(start, end)
    if part.edited is not None:
        start, end = part.edited.origin(start), part.edited.origin_of_end(end)
        first, last = part.edited.origins(first, last)
    if part.lines is not None:
        lines = part.lines.of(first, last)
    return DocumentPassage(
        text=text,
        start=part.offset + start,
        end=part.offset + end,
        headings=section.headings,
        anchor=section.anchor,
        page=part.page,
        table=table,
        source=source,
        lines=lines or NO_LINES,
    )
