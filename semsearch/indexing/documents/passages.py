"""From the headings and blocks of a document to its passages: pieces of one section each."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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

# A section that is divided is also divided before an anchor, if the passage has at least this share of its tokens.
LEAST_FILLED = 0.25


class SizedSpan(NamedTuple):
    """A piece of a text that fits in a passage."""

    start: int
    end: int
    tokens: int
    header: str = ""  # the header of the table that it continues
    anchor: str = ""  # the anchor at its beginning
    is_entry: bool = False  # whether it begins a passage


class TextSpan(NamedTuple):
    """The text of a passage."""

    start: int
    end: int
    header: str  # the header of the table that it continues
    anchor: str = ""  # the last anchor of the section that is at its beginning or before it
    first: str = ""  # the first anchor in it
    is_entry: bool = False


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

        An entry begins a passage. If not all blocks fit, anchors are preferred places for a division.
        A prefix that leaves no room gets half of what the model reads; its texts are then truncated.
        """
        room = min(self.passage_tokens, max(self._room - self.count(prefix), self._room // 2, 1))
        budget = max(room - self._overlap, 1)
        pieces = list(self._pieces(text, list(blocks), budget))
        is_long = sum(piece.tokens for piece in pieces) > budget
        held: list[SizedSpan] = []  # the pieces of the next passage
        used = 0  # tokens of these pieces
        anchor = ""  # the last anchor before them
        for piece in pieces:
            is_place = bool(piece.anchor) and is_long and used >= LEAST_FILLED * budget
            if held and (piece.is_entry or is_place or used + piece.tokens > budget):
                span = self._join(text, held, pieces[0].start, anchor)
                yield span
                anchor = next((each.anchor for each in reversed(held) if each.anchor), anchor)
                held, used = [], self.count(piece.header)
            held.append(piece)
            used += piece.tokens
        if held:
            yield self._join(text, held, pieces[0].start, anchor)

    def _join(self, text: str, pieces: Sequence[SizedSpan], begin: int, anchor: str) -> TextSpan:
        """Return the passage of these pieces, in a section from `begin` on; `anchor` is the last one before them."""
        start = pieces[0].start
        return TextSpan(
            start=self._overlapping(text, begin, start) if start > begin else start,
            end=pieces[-1].end,
            header=pieces[0].header,
            anchor=pieces[0].anchor or anchor,
            first=next((piece.anchor for piece in pieces if piece.anchor), ""),
            is_entry=pieces[0].is_entry,
        )

    def split(self, text: str) -> list[tuple[int, int]]:
        """Return the ranges of the passages of a text without headings."""
        return [(span.start, span.end) for span in self.divide(text, paragraphs(text), "")]

    def _pieces(self, text: str, blocks: Sequence[Block], budget: int, header: str = "") -> Iterator[SizedSpan]:
        for place, block in enumerate(blocks):
            own = ""
            if place:
                own = header
            elif header and len(blocks) > 1 and blocks[1].is_entry:
                continue  # the row of the header: each entry is read with it
            has_entries = any(part.is_entry for part in block.parts)
            if not has_entries and self.fits(text, block.start, block.end, budget):
                tokens = self.count(text[block.start : block.end])
                yield SizedSpan(block.start, block.end, tokens, own, block.anchor, block.is_entry)
            elif block.parts:
                room = max(budget - self.count(block.header), budget // 2, 1)
                yield from self._pieces(text, block.parts, room, block.header)
            else:
                yield from self._sentences(text, block, budget, own)

    def _sentences(self, text: str, block: Block, budget: int, header: str) -> Iterator[SizedSpan]:
        """Yield the pieces of a block without parts that is too long. The first one has the anchor of the block."""
        import semchunk  # it imports tqdm, and a document without a long block needs neither

        begin = block.start
        while begin < block.end:
            end = min(begin + SENTENCE_CHARACTERS, block.end)
            if end < block.end:  # at a blank, if there is one
                end = max(text.rfind(blank, begin + SENTENCE_CHARACTERS // 2, end) for blank in "\n ") + 1 or end
            _, ranges = semchunk.chunk(text[begin:end], budget, self.count, memoize=False, offsets=True)
            for first, last in ranges:
                for piece in trimmed(text, begin + first, begin + last):
                    tokens = self.count(text[piece.start : piece.end])
                    is_first = piece.start == block.start
                    anchor = block.anchor if is_first else ""
                    yield SizedSpan(piece.start, piece.end, tokens, header, anchor, is_first and block.is_entry)
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
    place: str  # anchor to which a result leads: that of its own text, if it has one
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

    def place(self, span: TextSpan, *, is_first: bool) -> str:
        """Return the anchor to which a passage of the section leads; is_first says that it follows the heading.

        It is the last anchor at or before the beginning of the passage. Text that follows a heading with an anchor
        leads to the heading, unless it is an entry. Below a heading without one, it is the first anchor in the passage.
        """
        if not self.path:
            return span.anchor
        own = self.path[-1].anchor
        if is_first and own and not span.is_entry:
            return own
        return span.anchor or own or span.first or self.anchor


def divide(document: Document, splitter: Splitter) -> Iterator[DocumentPassage]:
    """Yield the passages of a document in order. No passage is longer than a part, such as a page."""
    path: list[Heading] = []  # the open headings
    for part in document.parts:
        sections = list(_sections(part, path))
        if part.page is None:  # in a PDF, the next page can have the text of a heading
            _add_headings_alone(part, sections)
        for section in sections:
            prefix = heading_prefix({"title": document.title, "headings": section.headings})
            is_first = True
            for span in splitter.divide(part.text, section.blocks, prefix):
                place = section.place(span, is_first=is_first)
                is_first = False
                for block in trimmed(part.text, span.start, span.end):
                    passage = _passage(part, section, block, span.header, place)
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


def _passage(part: DocumentPart, section: _Section, block: Block, table: str, place: str) -> DocumentPassage:
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
        place=place,
        page=part.page,
        table=table,
        source=source,
        lines=lines or NO_LINES,
    )
