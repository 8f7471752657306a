"""Markdown: CommonMark with tables. Offsets are those of the file's own text."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.indexing.documents.document import MKDOCS, Block, Document, DocumentPart, Heading, Slugs, decode, trimmed
from semsearch.indexing.documents.front_matter import read_front_matter

if TYPE_CHECKING:
    from markdown_it.token import Token

NEWLINE = re.compile(r"\r\n?|\n")  # as markdown-it counts lines
# a heading {#anchor}, which only MkDocs heeds. The lookahead and the atomic group keep the time linear in the text
OWN_ANCHOR = re.compile(r"\{(?=[^{}]*\}\s*$):?[^{}]*#([\w.:-]+)[^{}]*\}\s*$")
COMMENTS = re.compile(r"\s*(?:(?><!--.*?-->)\s*)+", re.DOTALL)
WORDS = {
    "softbreak": " ",
    "hardbreak": " ",
    "html_inline": "",
}  # text of a heading's tokens, if not their content
UNDERSCORE = "\ue000"  # a character without a meaning
ITEM_TOKENS = frozenset([("list_item_open", 1), ("tr_open", 2)])  # tokens that begin an item or a row, and their levels


def read_markdown(path: Path, anchors: str) -> Document:
    """Return a Markdown file as a document, with anchors in one of the styles of `Slugs`.

    The title is that of the front matter, else the first heading of level 1, else the file's name; it is plain text.
    Raises UnreadableError if it is not UTF-8.
    """
    from markdown_it import MarkdownIt

    text = decode(path.read_bytes())
    fields, begin, problem = read_front_matter(text)
    starts = [begin, *(newline.end() for newline in NEWLINE.finditer(text, begin)), len(text)]
    tokens = MarkdownIt("commonmark").enable("table").parse(text[begin:])
    slugs, title = Slugs(anchors), ""
    blocks: list[Heading | Block] = []
    for place, token in enumerate(tokens):
        if token.map is None or (token.level and token.type != "heading_open"):
            continue
        start, end = (starts[line] for line in token.map)
        if token.type == "heading_open":
            words = _words(tokens[place + 1])
            own = OWN_ANCHOR.search(words)
            shown = words[: own.start()] if own else words
            if own and anchors == MKDOCS:
                anchor = slugs(shown, own[1])
            else:
                anchor = slugs(words)
            if token.level:  # in a list or a quotation, where it begins no section
                continue
            heading = Heading(start, end, int(token.tag[1]), " ".join(shown.split()), anchor)
            title = title or (heading.text if heading.level == 1 else "")
            blocks.append(heading)
        elif token.type != "hr" and not COMMENTS.fullmatch(text, start, end):
            begins = [*_parts(tokens, place, starts), end]
            parts = tuple(part for bounds in pairwise(begins) for part in trimmed(text, *bounds))
            header = ""
            if token.type == "table_open":
                header = text[parts[0].start : end].partition("\n")[0].strip()
            blocks += trimmed(text, start, end, parts, header)
    stated = _plain(str(fields.pop("title", "")))
    return Document(stated or title or path.stem, [DocumentPart(text, blocks)], fields, problem=problem)


def _plain(title: str) -> str:
    """Return a title without Markdown. Its underscores are those of names such as __init__, and its tags are text."""
    from markdown_it import MarkdownIt

    (inline,) = MarkdownIt("commonmark", {"html": False}).parseInline(title.replace("_", UNDERSCORE))
    return " ".join(_words(inline).replace(UNDERSCORE, "_").split())


def _words(inline: "Token") -> str:
    return "".join(
        _words(child) if child.type == "image" else WORDS.get(child.type, child.content)
        for child in inline.children or ()
    )


def _parts(tokens: list["Token"], place: int, starts: list[int]) -> Iterator[int]:
    """Yield where the items of a list or the rows of a table begin; nothing for another token."""
    for number in range(place + 1, len(tokens)):
        token = tokens[number]
        if not token.level:
            return
        if (token.type, token.level) in ITEM_TOKENS and token.map is not None:
            yield starts[token.map[0]]
