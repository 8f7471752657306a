"""Markdown: CommonMark with tables. Offsets are those of the file's own text."""

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from export.documents.addresses import MKDOCS, Slugs
from export.documents.document import Block, Document, Heading, Part, decode, trimmed
from export.documents.front_matter import read_front_matter

if TYPE_CHECKING:
    from markdown_it.token import Token

NEWLINE = re.compile(r"\r\n?|\n")  # as markdown-it counts lines
OWN_ANCHOR = re.compile(r"\s*\{:?[^{}]*#([\w.:-]+)[^{}]*\}\s*$")  # of MkDocs: a heading {#anchor}
COMMENT = re.compile(r"\s*(?:<!--.*?-->\s*)+", re.DOTALL)


def read_markdown(path: Path, anchors: str) -> Document:
    """Return a Markdown file as a document, with anchors in one of the styles of `Slugs`.

    The title is that of the front matter, else the first heading of level 1, else the file's name.
    Raises UnreadableError if it is not UTF-8, or for wrong front matter.
    """
    from markdown_it import MarkdownIt

    text = decode(path.read_bytes())
    fields, begin = read_front_matter(text)
    starts = [begin, *(newline.end() for newline in NEWLINE.finditer(text, begin)), len(text)]
    tokens = MarkdownIt("commonmark").enable("table").parse(text[begin:])
    slugs = Slugs(anchors)
    blocks: list[Heading | Block] = []
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        start, end = (starts[line] for line in token.map)
        if token.type == "heading_open":
            written = _plain_text(tokens[place + 1])
            own = OWN_ANCHOR.search(written) if anchors == MKDOCS else None
            heading = written[: own.start()] if own else written
            anchor = slugs(heading, own[1] if own else "")
            blocks.append(Heading(start, end, int(token.tag[1]), " ".join(heading.split()), anchor))
        elif token.type in ("html_block", "hr") and (token.type == "hr" or COMMENT.fullmatch(text, start, end)):
            continue
        elif block := trimmed(text, start, end, *_parts(text, starts, tokens, place)):
            blocks.append(block)
    own_title = fields.pop("title", None)
    first = next((block.text for block in blocks if isinstance(block, Heading) and block.level == 1), path.stem)
    return Document(str(own_title or first or path.stem), [Part(text, blocks)], fields)


def _parts(text: str, starts: list[int], tokens: list["Token"], place: int) -> tuple[tuple[Block, ...], str]:
    """Return the items of a list or the rows of a table, and the table's header; nothing for another token."""
    kind = {"bullet_list_open": ("list_item_open", 1), "ordered_list_open": ("list_item_open", 1)}
    inner, level = kind.get(tokens[place].type) or ("tr_open" if tokens[place].type == "table_open" else "", 2)
    parts: list[Block] = []
    if inner:
        closing = tokens[place].type.replace("open", "close")
        for token in islice(tokens, place + 1, None):
            if token.type == closing and token.level == 0:
                break
            if token.type == inner and token.level == level and token.map is not None:
                part = trimmed(text, starts[token.map[0]], starts[token.map[1]])
                parts += [part] if part else []
    if level == 1 or not parts:
        return tuple(parts), ""
    header = text[parts[0].start : parts[0].end]
    return tuple(parts), header


def _plain_text(inline: "Token") -> str:
    """Return the words of a heading: without marks, and with the text of links and images."""
    words = {"softbreak": " ", "hardbreak": " ", "html_inline": ""}
    return "".join(words.get(child.type, child.content) for child in inline.children or ())
