"""HTML: the text of a page without navigation and other boilerplate, a line for each row of a table.

The text is extracted, so offsets count characters of the text and not of the file.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from export.documents.document import Block, Document, Heading, Part, UnreadableError, decode

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
CHARSET_WITHIN = 2048  # bytes in which a page states its encoding
MAIN = ("[role=main]", "main article", "main", "article")  # the text is in the first that occurs once in a page
BOILERPLATE = "|nav|footer|script|style|noscript|template|svg|iframe|object|button|select|form|head|"
OUTSIDE = "|header|aside|"  # boilerplate too, except in an article
ROLES = "|navigation|search|banner|contentinfo|"
PERMALINK = re.compile(r"(?<!\S)(headerlink|anchor|hash-link|header-anchor|anchor-link)(?!\S)")  # "¶" after headings
GENERATED = re.compile(r"(?<!\S)(viewcode-link|(gen)?indextable)(?!\S)")  # Sphinx: "[source]", tables of its index
INLINE = """\
|a|abbr|b|bdi|bdo|big|br|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|\
sub|sup|time|tt|u|var|wbr|"""
HEADINGS = {f"h{level}": level for level in range(1, 7)}
DEEPEST = 12  # level of headings; a described name within another one is one level below it
LINE_BREAK = "\v"


def read_html(path: Path) -> Document:
    """Return an HTML file as a document. Raises UnreadableError for another encoding than it states."""
    content = path.read_bytes()
    stated = CHARSET.search(content[:CHARSET_WITHIN])
    try:
        text = decode(content) if stated is None else content.decode(stated[1].decode())
    except (UnicodeDecodeError, LookupError) as error:
        raise UnreadableError(f"not in the encoding that it states: {error}") from error
    content = text.encode()
    del text  # each copy of a page of 100 MB counts
    return read_html_text(content, path)


def read_html_text(html: str | bytes, path: Path, has_anchors: bool = True) -> Document:
    """Return HTML as a document, whose title is its first h1, else its <title>, else the file's name.

    Bytes are UTF-8.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    found = (tree.css(place) for place in MAIN)
    root = next((nodes[0] for nodes in found if len(nodes) == 1), tree.body)
    reader = _Reader(has_anchors)
    if root is not None:
        reader.read(root)
    first = next((each.text for each in reader.blocks if isinstance(each, Heading) and each.level == 1), "")
    named = tree.css_first("title")
    title = first or (" ".join(named.text().split()) if named is not None else "") or path.stem
    return Document(title, [Part("".join(reader.pieces), reader.blocks)])


class _Reader:
    """Collects the text of a page and its blocks."""

    def __init__(self, has_anchors: bool) -> None:
        self.pieces: list[str] = []
        self.blocks: list[Heading | Block] = []
        self._has_anchors = has_anchors
        self._length = 0
        self._inline: list[str] = []  # the text since the last block
        self._mark = ""  # "- " at the start of a list item
        self._depth = 0  # description lists around the current place

    def read(self, root: "LexborNode") -> None:
        whole = None  # an element that is read already; its content is skipped
        for node, is_end in _walk(root):
            if whole is not None:
                whole = None if is_end and node.mem_id == whole else whole
            elif node.tag == "-text":
                self._inline.append(node.text_content or "")
            elif f"|{node.tag}|" in INLINE:
                self._inline += [LINE_BREAK] if node.tag == "br" and not is_end else []
            else:
                lines = (" ".join(line.split()) for line in "".join(self._inline).split(LINE_BREAK))
                self._inline.clear()
                if text := "\n".join(lines).strip():
                    self._write(self._mark + text)
                    self._mark = ""
                whole = node.mem_id if not is_end and self._read_whole(node) else None
                if node.tag == "dl":
                    if is_end:
                        self.blocks.append(Heading(self._length, self._length, self._level(), "", ""))
                    self._depth += -1 if is_end else 1
                elif node.tag == "li":
                    self._mark = "" if is_end else "- "

    def _read_whole(self, node: "LexborNode") -> bool:
        """Read an element if it is one block; return False if not."""
        if node.tag in HEADINGS or (node.tag == "dt" and node.id):
            if text := _line(node):
                anchor = _anchor(node) if self._has_anchors else ""
                self.blocks.append(Heading(*self._append(text), HEADINGS.get(node.tag, self._level()), text, anchor))
        elif node.tag == "pre":
            self._write(_inner_text(node).strip())
        elif node.tag == "table" and not node.css("table table, h1, h2, h3, h4, h5, h6, pre"):
            cells = ((row, row.css("th, td")) for row in node.css("tr"))
            lines = [(" | ".join(map(_line, each)), row) for row, each in cells if any(map(_line, each))]
            rows = tuple(Block(*self._append(text, "\n" if n else "\n\n")) for n, (text, _) in enumerate(lines))
            if rows:
                header = "" if lines[0][1].css("td") else lines[0][0]
                self.blocks.append(Block(rows[0].start, rows[-1].end, rows, header))
        else:
            return False
        return True

    def _level(self) -> int:
        return min(len(HEADINGS) + self._depth, DEEPEST)

    def _append(self, text: str, gap: str = "\n\n") -> tuple[int, int]:
        """Add a text after a gap; return where it begins and ends."""
        self.pieces += [gap, text] if self.pieces else [text]
        self._length += len(text) + (len(gap) if len(self.pieces) > 1 else 0)
        return self._length - len(text), self._length

    def _write(self, text: str) -> None:
        if text:
            self.blocks.append(Block(*self._append(text, "\n" if self._mark else "\n\n")))


def _walk(root: "LexborNode") -> Iterator[tuple["LexborNode", bool]]:
    """Yield each node below an element at its beginning (False) and, unless it is text, at its end (True).

    Boilerplate is left out. Pages can be nested deeply, so nothing is recursive. The last end is the element's own.
    """
    outside = "" if root.tag == "article" or root.attributes.get("role") == "main" else OUTSIDE
    stack = [(root, True), (root.first_child, False)]
    while stack:
        node, is_end = stack.pop()
        if node is None:
            continue
        if is_end:
            yield node, True
            continue
        if node is not root:
            stack.append((node.next, False))
        if node.tag == "-text":
            yield node, False
        elif node.is_element_node and f"|{node.tag}|" not in outside and not _is_left_out(node):
            yield node, False
            stack += [(node, True), (node.first_child, False)]


def _is_left_out(node: "LexborNode") -> bool:
    if f"|{node.tag}|" in BOILERPLATE:
        return True
    named = node.attributes
    is_class_left_out = (classes := named.get("class")) and (
        GENERATED.search(classes) or (node.tag == "a" and PERMALINK.search(classes))
    )
    return bool(is_class_left_out or "hidden" in named or f"|{named.get('role')}|" in ROLES)


def _inner_text(node: "LexborNode") -> str:
    inner = (each for each, is_end in _walk(node) if not is_end)
    return "".join(
        "\n" if each.tag == "br" else each.text_content or "" for each in inner if each.tag in ("-text", "br")
    )


def _line(node: "LexborNode") -> str:
    return " ".join(_inner_text(node).split())


def _anchor(node: "LexborNode") -> str:
    """Return the id of a heading: its own, the id of the section that it begins, or one within it."""
    parent = node.parent
    if not node.id and parent is not None and parent.id and parent.tag in ("section", "div"):
        first = next((child for child in parent.iter() if child.tag != "span"), None)
        if first is not None and first.mem_id == node.mem_id:
            return str(parent.id)
    within = node if node.id else node.css_first("[id], a[name]")
    return (within.id or within.attributes.get("name") or "") if within is not None else ""
