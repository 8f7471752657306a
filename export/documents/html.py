"""HTML: the text of a page without navigation and other boilerplate, a line for each row of a table.

The text is extracted, so offsets count its characters and not those of the file.
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
MAIN = ("[role=main]", "main article", "main", "article")  # the first that a page has once holds its text
LEFT_OUT = frozenset(["nav", "footer", "script", "style", "noscript", "template", "svg", "iframe", "object", "button", "select", "form", "head"])
OUTSIDE = frozenset(["header", "aside"])  # left out too, unless they are in an article
ROLES = frozenset(["navigation", "search", "banner", "contentinfo"])
PERMALINKS = frozenset(["headerlink", "anchor", "hash-link", "header-anchor", "anchor-link"])  # "¶" after headings
INLINE = frozenset(
    ["-text", "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"]
)
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
    return read_html_text(text, path)


def read_html_text(html: str, path: Path, has_anchors: bool = True) -> Document:
    """Return HTML as a document, whose title is its first h1, else its <title>, else the file's name."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    found = (tree.css(place) for place in MAIN)
    root = next((nodes[0] for nodes in found if len(nodes) == 1), tree.body or tree.root)
    reader = _Reader()
    if root is not None:
        reader.read(root)
    headings = [block for block in reader.blocks if isinstance(block, Heading)]
    if not has_anchors:
        reader.blocks = [
            Heading(block.start, block.end, block.level, block.text, "") if isinstance(block, Heading) else block
            for block in reader.blocks
        ]
    named = tree.css_first("title")
    first = next((heading.text for heading in headings if heading.level == 1), "")
    title = first or (" ".join(named.text().split()) if named is not None else "") or path.stem
    return Document(title, [Part("".join(reader.pieces), reader.blocks)])


class _Reader:
    """Collects the text of a page and its blocks."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.blocks: list[Heading | Block] = []
        self._length = 0
        self._inline: list[str] = []  # the text since the last block
        self._mark = ""  # of a list item that begins

    def read(self, root: "LexborNode") -> None:
        """Read what is in an element."""
        depth = 0  # lists of descriptions around the place
        taken = None  # an element that is read whole; what is in it is passed over
        for node, is_end in _walk(root):
            tag = node.tag or ""
            if taken is not None:
                if is_end and node.mem_id == taken:
                    taken = None
                continue
            if tag == "-text":
                self._inline.append(node.text_content or "")
            elif tag == "br" and not is_end:
                self._inline.append(LINE_BREAK)
            elif tag == "br" or tag in INLINE:
                continue
            else:
                self._flush()
                if is_end:
                    if tag == "dl":
                        self.blocks.append(Heading(self._length, self._length, min(6 + depth, DEEPEST), "", ""))
                        depth -= 1
                    continue
                self._mark = "- " if tag == "li" else self._mark
                if tag == "dl":
                    depth += 1
                elif tag in HEADINGS or (tag == "dt" and node.id):
                    self._write_heading(node, HEADINGS.get(tag) or min(6 + depth, DEEPEST))
                    taken = node.mem_id
                elif tag == "pre":
                    self._write(_inner_text(node).strip("\n"))
                    taken = node.mem_id
                elif tag == "table" and not node.css("table table, h1, h2, h3, h4, h5, h6, pre"):
                    self._write_table(node)
                    taken = node.mem_id
        self._flush()

    def _flush(self) -> None:
        lines = (" ".join(line.split()) for line in "".join(self._inline).split(LINE_BREAK))
        self._inline.clear()
        if text := "\n".join(lines).strip():
            self._write(self._mark + text)
            self._mark = ""

    def _append(self, text: str, gap: str = "\n\n") -> tuple[int, int]:
        """Add a text after a gap; return where it begins and ends."""
        if self.pieces:
            self.pieces.append(gap)
            self._length += len(gap)
        self.pieces.append(text)
        self._length += len(text)
        return self._length - len(text), self._length

    def _write(self, text: str) -> None:
        if text.strip():
            self.blocks.append(Block(*self._append(text.strip(), "\n" if text.startswith("- ") else "\n\n")))

    def _write_heading(self, node: "LexborNode", level: int) -> None:
        if text := _line(node):
            self.blocks.append(Heading(*self._append(text), level, text, _anchor(node)))

    def _write_table(self, node: "LexborNode") -> None:
        rows: list[Block] = []
        header = ""
        for row in node.css("tr"):
            cells = row.css("th, td")
            text = " | ".join(_line(cell) for cell in cells)
            if text.strip(" |"):
                header = text if not rows and all(cell.tag == "th" for cell in cells) else header
                rows.append(Block(*self._append(text.strip(), "\n" if rows else "\n\n")))
        if rows:
            self.blocks.append(Block(rows[0].start, rows[-1].end, tuple(rows), header))


def _walk(root: "LexborNode") -> Iterator[tuple["LexborNode", bool]]:
    """Yield each node below an element at its beginning (False) and, where it has children, at its end (True).

    Boilerplate is left out. No recursion: pages are nested as deeply as they like.
    """
    outside = frozenset() if root.tag == "article" or root.attributes.get("role") == "main" else OUTSIDE
    stack: list[tuple[LexborNode, bool]] = [(root.first_child, False)] if root.first_child is not None else []
    while stack:
        node, is_end = stack.pop()
        if not is_end and node.next is not None:
            stack.append((node.next, False))
        if not is_end and (node.tag in outside or _is_left_out(node)):
            continue
        yield node, is_end
        if not is_end and node.tag != "-text":
            stack.append((node, True))
            if node.first_child is not None:
                stack.append((node.first_child, False))


def _is_left_out(node: "LexborNode") -> bool:
    if node.tag == "-text":
        return False
    if node.tag in LEFT_OUT or not node.is_element_node:
        return True
    named = node.attributes
    if not named:
        return False
    if node.tag == "a" and PERMALINKS & set((named.get("class") or "").split()):
        return True
    return "hidden" in named or named.get("aria-hidden") == "true" or named.get("role") in ROLES


def _inner_text(node: "LexborNode") -> str:
    texts = (inner for inner, _ in _walk(node))
    return "".join(
        "\n" if text.tag == "br" else text.text_content or "" for text in texts if text.tag in ("-text", "br")
    )


def _line(node: "LexborNode") -> str:
    return " ".join(_inner_text(node).split())


def _anchor(node: "LexborNode") -> str:
    """Return the id of a heading: its own, that of the section which it begins, or one within it."""
    if node.id:
        return node.id
    parent = node.parent
    if parent is not None and parent.id and parent.tag in ("section", "div"):
        first = next((child for child in parent.iter() if child.tag != "span"), None)
        if first is not None and first.mem_id == node.mem_id:
            return parent.id
    within = node.css_first("[id], a[name]")
    return (within.id or within.attributes.get("name") or "") if within is not None else ""
