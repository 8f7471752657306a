"""Markdown: CommonMark with tables, footnotes, definition lists and wiki links. Offsets are those of the file's text.

The parser is pulldown-cmark, whose events have places, so that each passage has its plain text too.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.indexing.documents.addresses import DOCUSAURUS, OWN_ANCHORS, Slugs
from semsearch.indexing.documents.dialects import Code, find_comments, find_edits
from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading, code_parts, decode, trimmed
from semsearch.indexing.documents.front_matter import read_front_matter
from semsearch.indexing.documents.html import INLINE
from semsearch.indexing.documents.lines import FileLines, LinesWithInserts, SourceLines
from semsearch.indexing.documents.looks import Looks
from semsearch.indexing.documents.markup import Edit, EditedText, Markup, PlainPiece
from semsearch.indexing.documents.mdx import find_mdx_edits, with_partials

if TYPE_CHECKING:
    import pyromark

# a heading {#anchor}, which MkDocs and Docusaurus heed. The lookahead and the atomic group keep the time linear
OWN_ANCHOR = re.compile(r"\{(?=[^{}]*\}\s*$):?[^{}]*#([\w.:-]+)[^{}]*\}\s*$")
UNDERSCORE = "\ue000"  # a character without a meaning
TAG = re.compile(
    r"<(script|style)\b.*?</\1\s*>|</?([a-zA-Z][\w-]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.DOTALL | re.IGNORECASE
)
PARAGRAPH, LINE, CELL = "\n\n", "\n", " | "
GAPS = {  # what is between an element and what is before it
    **dict.fromkeys(("Paragraph", "Heading", "CodeBlock", "Table", "HtmlBlock", "FootnoteDefinition"), PARAGRAPH),
    **dict.fromkeys(("TableRow", "DefinitionListTitle", "DefinitionListDefinition"), LINE),
}
BLOCKS = (*GAPS, "List", "BlockQuote", "DefinitionList")
GAPS_OF_TAGS = {  # the same for a tag of HTML
    **dict.fromkeys(("br", "hr", "p", "div", "center", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"), LINE),
    **dict.fromkeys(("ul", "ol", "menu", "li", "dl", "dt", "dd", "table", "caption", "tr"), LINE),
    **dict.fromkeys(("section", "article", "main", "header", "footer", "nav", "aside", "address"), LINE),
    **dict.fromkeys(("details", "summary", "figure", "figcaption", "fieldset", "legend", "form"), LINE),
    **dict.fromkeys(("td", "th"), CELL),
}


def read_markdown(path: Path, anchors: str) -> Document:
    """Return a Markdown file as a document, with anchors in one of the styles of `Slugs`.

    The title is that of the front matter, else the first heading of level 1, else the file's name; it is plain text.
    Raises UnreadableError if it is not UTF-8.
    """
    if anchors == DOCUSAURUS:
        return read_mdx(path, anchors)
    return read_markdown_text(decode(path.read_bytes()), path, anchors)


def read_mdx(path: Path, anchors: str) -> Document:
    """Return an MDX file as a document, as `read_markdown` does. Places count with the text of partials."""
    looks: Looks = {}
    whole = with_partials(decode(path.read_bytes()), path, looks)
    text = whole.text
    begin = read_front_matter(text)[1]
    edits = (Edit(begin + edit.start, begin + edit.end, edit.text) for edit in find_mdx_edits(text[begin:]))
    edited = EditedText(text, edits)
    document = read_markdown_text(edited.text, path, anchors, LinesWithInserts(whole))
    return replace(document, parts=[replace(part, edited=edited) for part in document.parts], looks=looks)


def read_markdown_text(text: str, path: Path, anchors: str, lines: SourceLines | None = None) -> Document:
    """Return Markdown as a document; the path is that of its file, and `lines` are its lines if the text is not its."""
    fields, begin, problem = read_front_matter(text)
    code = Code((event.start, event.end) for event in _events(text, begin) if event.is_code)
    comments = [Edit(start=start, end=end) for start, end in find_comments(text, code)]
    edits = [Edit(0, begin), *comments, *find_edits(text, code, anchors)]
    edited = EditedText(text, edits)
    reader = _Reader(edited, anchors)
    for event in _events(edited.text):
        reader.read(event)
    markup = Markup(edited, reader.pieces, [*comments, *reader.tags])
    blocks = [block for block in reader.blocks if isinstance(block, Heading) or markup.plain(block.start, block.end)]
    headings = (block.text for block in blocks if isinstance(block, Heading) and block.level == 1)
    title = _plain(str(fields.pop("title", ""))) or next(filter(None, headings), path.stem)
    part = DocumentPart(text, blocks, markup=markup, lines=lines or FileLines(text))
    return Document(title, [part], fields, problem=problem)


class _Reader:
    """The headings and blocks of a text, and its plain text in pieces."""

    def __init__(self, edited: EditedText, anchors: str) -> None:
        self.pieces: list[PlainPiece] = []
        self.blocks: list[Heading | Block] = []
        self.tags: list[Edit] = []  # ranges of the original that are tags of HTML, with a blank if they separate words
        self._edited, self._anchors, self._slugs = edited, anchors, Slugs(anchors)
        self._gap = ""  # between the pieces so far and the next one
        self._depth = 0  # elements around the current place
        self._lists: list[int | None] = []  # number of the next item of each list around, None for bullets
        self._parts: list[int] = []  # where the items or rows of the current block begin
        self._in_code = False
        self._heading = 0  # number of pieces before the current heading

    def read(self, event: "_Event") -> None:
        """Read the next event of the parser."""
        if event.kind == "Start":
            self._begin(event)
            self._depth += 1
        elif event.kind == "End":
            self._depth -= 1
            self._end(event)
        elif event.name in ("Text", "Code"):
            self._add(event.start, event.end, event.value)
        elif event.name == "InlineHtml":
            self._add_html(event)
        elif event.name == "SoftBreak":
            self._add(event.start, event.end, " ")
        elif event.name == "HardBreak":
            self._gap = LINE

    def _begin(self, event: "_Event") -> None:
        name = event.name
        if name == "List":
            self._lists.append(event.value)
        elif name == "Item":
            self._begin_item(event.start)
        elif name == "TableCell":
            self._gap = self._gap or CELL
        elif name in GAPS and not (LINE in self._gap and self._gap.endswith(" ")):  # an item's text follows its mark
            self._gap = GAPS[name]
        if name == "TableRow" and self._depth == 1:
            self._parts.append(event.start)
        if name == "CodeBlock":
            self._in_code = True
        if name == "Heading":
            self._heading = len(self.pieces)

    def _begin_item(self, start: int) -> None:
        number = self._lists[-1]
        mark = "- "
        if number is not None:
            mark = f"{number}. "
            self._lists[-1] = number + 1
        gap = LINE
        if self._depth == 1 and not self._parts:  # the first item
            gap = PARAGRAPH
        self._gap = gap + "  " * (len(self._lists) - 1) + mark
        if self._depth == 1:
            self._parts.append(start)

    def _end(self, event: "_Event") -> None:
        if event.name == "CodeBlock":
            self._end_code()
        elif event.name == "List":
            self._lists.pop()
        elif event.name == "HtmlBlock":
            self._add_html(event)
        if event.name == "Heading":
            self._end_heading(event)
        elif not self._depth and event.name in BLOCKS:
            self._end_block(event)

    def _end_code(self) -> None:
        self._in_code = False
        if self.pieces and self.pieces[-1].keeps_blanks:  # its last line break belongs to the fence
            last = self.pieces.pop()
            self.pieces.append(replace(last, end=last.end - 1, text=last.text.removesuffix("\n")))

    def _end_heading(self, event: "_Event") -> None:
        pieces = self.pieces[self._heading :]
        if pieces and pieces[0].start == pieces[0].end:  # the gap before the heading
            del pieces[0]
        words = "".join(piece.text if piece.end > piece.start else " " for piece in pieces)
        own = OWN_ANCHOR.search(words)
        if own and self._edited.text[pieces[-1].start : pieces[-1].end].endswith("`"):  # it is code
            own = None
        shown = words
        if own:
            shown = words[: own.start()]
            self._shorten_heading(len(shown.rstrip()))
        anchor = self._slugs(shown, own[1]) if own and self._anchors in OWN_ANCHORS else self._slugs(words)
        if event.value == "H1" and self._anchors == DOCUSAURUS:  # the title of a page, which has no id
            anchor = ""
        if not self._depth:  # in a list or a quotation, it begins no section
            start, end = self._edited.origin(event.start), self._edited.origin_of_end(event.end)
            self.blocks.append(Heading(start, end, int(event.value[1]), " ".join(shown.split()), anchor))

    def _shorten_heading(self, length: int) -> None:
        """Remove what follows these first characters of the current heading, which is its anchor."""
        for place in range(self._heading, len(self.pieces)):
            piece = self.pieces[place]
            if piece.start == piece.end:  # a gap: one before the heading has no character, any other one is a blank
                length -= place > self._heading
                continue
            kept = piece.text[: max(length, 0)]
            length -= len(piece.text)
            self.pieces[place] = replace(piece, end=max(piece.end + min(length, 0), piece.start), text=kept)

    def _end_block(self, event: "_Event") -> None:
        begins, header = self._parts, ""
        if event.name == "Table" and begins:
            inside = (piece.text for piece in self.pieces if event.start <= piece.start < begins[0])
            header = "".join(inside).strip()
            begins = [event.start, *begins]
        self._parts = []
        text, end = self._edited.original, self._edited.origin_of_end(event.end)
        bounds = pairwise([*map(self._edited.origin, begins), end])
        parts = tuple(part for bound in bounds for part in trimmed(text, *bound))
        if event.name == "CodeBlock":
            parts = code_parts(text, self._edited.origin(event.start), end)
        self.blocks += trimmed(text, self._edited.origin(event.start), end, parts, header)

    def _add(self, start: int, end: int, text: str) -> None:
        if self._gap:
            self.pieces.append(PlainPiece(start, start, self._gap, keeps_blanks=True))
            self._gap = ""
        self.pieces.append(PlainPiece(start, end, text, self._in_code))

    def _add_html(self, event: "_Event") -> None:
        """Add the text between tags of HTML. A tag that begins a line of a page begins one here."""
        content, place = self._edited.text[event.start : event.end], 0
        for tag in TAG.finditer(content):
            self._add_text_of_html(content[place : tag.start()], event.start + place)
            place = tag.end()
            start, end = event.start + tag.start(), event.start + place
            name = (tag[2] or "").lower()
            blank = "" if f"|{name}|" in INLINE else " "
            self.tags.append(Edit(self._edited.origin(start), self._edited.origin_of_end(end), blank))
            if LINE not in self._gap:
                self._gap = GAPS_OF_TAGS.get(name, self._gap)
        self._add_text_of_html(content[place:], event.start + place)

    def _add_text_of_html(self, text: str, start: int) -> None:
        if text.strip():
            self._add(start, start + len(text), html.unescape(text))
        elif text:
            self._gap = self._gap or " "


@dataclass(frozen=True, slots=True)
class _Event:
    """The begin or the end of an element, or a text, at the characters start to end of the parsed text."""

    kind: str  # Start, End, or the name of a text
    name: str
    value: Any  # the text, or what the parser says of an element
    start: int
    end: int

    @property
    def is_code(self) -> bool:
        return self.name == "Code" or (self.kind == "Start" and self.name == "CodeBlock")


def _events(text: str, begin: int = 0) -> Iterator[_Event]:
    """Yield the events of the parser for a text from the character `begin` on."""
    import pyromark

    parsed = text[begin:]
    starts = np.frombuffer(parsed.encode(), np.uint8) & 0xC0 != 0x80  # the first byte of each character
    characters = np.concatenate([[begin], begin + np.cumsum(starts)])  # the character at each byte
    for event, place in pyromark.events_with_range(parsed, options=_options()):
        kind, value = _item(event)
        name = kind
        if kind in ("Start", "End"):
            name, value = _item(value)
        yield _Event(kind, name, value, int(characters[place["start"]]), int(characters[place["end"]]))


def _item(event: Any) -> tuple[str, Any]:
    if isinstance(event, str):
        return event, None
    ((name, value),) = event.items()
    return name, value


def _options() -> "pyromark.Options":
    from pyromark import Options

    return (
        Options.ENABLE_TABLES
        | Options.ENABLE_FOOTNOTES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_TASKLISTS
        | Options.ENABLE_DEFINITION_LIST
        | Options.ENABLE_WIKILINKS
    )


def _plain(title: str) -> str:
    """Return a title without Markdown. Its underscores are those of names such as __init__, and its tags are text."""
    heading = "# " + " ".join(title.replace("_", UNDERSCORE).split())
    texts = ("Text", "Code", "InlineHtml")
    words = "".join(event.value for event in _events(heading) if event.kind in texts)
    return " ".join(words.replace(UNDERSCORE, "_").split())
