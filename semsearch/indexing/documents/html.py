"""HTML: the text of a page without navigation and other boilerplate, a line for each row of a table.

The text is extracted, so offsets count characters of the text and not of the file.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading, code_parts
from semsearch.indexing.documents.pages import page_columns, page_marks, remove_chrome

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

BODY, IGNORED = "[data-search-body]", "data-search-ignore"  # what authors mark
CANONICAL, ROBOTS = "link[rel=canonical i][href]", "meta[name=robots i][content*=noindex i]"
MAIN = (BODY, "[role=main]", "main article", "main", "article")  # the text is in the first that occurs once in a page
BOILERPLATE = "|nav|footer|form|svg|iframe|object|video|audio|canvas|button|select|"
INVISIBLE = "|script|style|noscript|template|head|annotation|annotation-xml|rp|"
CONTENT = "|article|main|section|"  # they contain headers and asides that are content
OUTSIDE = "|header|aside|"  # boilerplate outside of these
PAGE_ELEMENTS = "main, article, h1, h2, p"  # a form with one of these is the whole page, as ASP.NET writes it
ROLES = "|navigation|search|banner|contentinfo|"
# classes of the link "¶" after headings, which is "Section titled …" in Starlight
PERMALINK = re.compile(r"(?<!\S)(headerlink|anchor|hash-link|header-anchor|anchor-link|sl-anchor-link|permalink)(?!\S)")
GENERATED = re.compile(r"(?<!\S)(viewcode-link|(gen)?indextable)(?!\S)")  # Sphinx: "[source]", tables of its index
INLINE = """\
|a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|nobr|q|rb|ruby|s|samp|small|span|\
strike|strong|sub|sup|time|tt|u|var|wbr|"""
BLANK = """\
|img|picture|source|map|area|input|textarea|meter|progress|embed|rt|\
svg|iframe|object|video|audio|canvas|button|select|"""  # in a line, between words
HEADINGS = {f"h{level}": level for level in range(1, 7)}
ALL_HEADINGS = ", ".join(HEADINGS)
NO_HEADING = "p, ul, ol, dl, table, pre, blockquote, section, article"  # a heading with one of these was not closed
LONGEST_HEADING = 300  # characters; a longer one was not closed
DEEPEST = 12  # level of headings; a described name within another one is one level below it
ANCHORED = "[id], a[name]"
WRAPPERS = "|div|section|article|main|"  # with a heading in it, the anchor of one belongs to the heading or to no text
ENTRY_CHARACTERS = 100  # characters of a text that are compared with its anchor
ANCHOR_WORD = re.compile(r"[^\W_]+")
LINE_BREAK = "\v"
NOT_DISPLAYED = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
CODE_LINE = re.compile(r"(?<!\S)(?:line|token-line|code-line|ec-line)(?!\S)")  # classes of a line of code
NO_ELEMENT: dict[str, str | None] = {"hidden": None}  # a comment, which is not displayed
BEGIN, END, GAP = range(3)  # the edges of an element; a gap is an element that is left out

STATED_WITHIN = 16_384  # bytes in which a page states its encoding; browsers read at least 1,024
STATED_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)  # in the content of a meta element
XML_DECLARATION = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"'>]+)")
# What https://encoding.spec.whatwg.org/#names-and-labels lists, by Python's names: some labels mean another encoding
# there, which has more characters. A page that states UTF-16 in ASCII is none.
WEB_CODECS = re.compile(r"utf-8|cp(866|874|932|949|125\d)|iso8859-\d+|koi8-[ru]|gb18030|big5hkscs|euc_jp|iso2022_jp")
WEB_ENCODINGS = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "utf-8"),
    "iso8859-9": "cp1254",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}


def read_html(path: Path) -> Document:
    """Return an HTML file as a document, in the encoding in which browsers read it."""
    content = path.read_bytes()
    text, problem = _decode(content)
    content = text.encode()
    del text  # each copy of a page of 100 MB counts
    return replace(read_html_text(content, path), problem=problem)


def _decode(content: bytes) -> tuple[str, str]:
    """Return the text of a page and what of it could not be read.

    A byte order mark decides, then the first known encoding that the page states. Without one it is UTF-8 or, if that
    is impossible, Windows-1252.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        codec: str | None = "utf-16"
    elif content.startswith(codecs.BOM_UTF8):
        codec = "utf-8-sig"
    else:
        codec = next(filter(None, map(_find_codec, _stated(content))), None)
    try:
        return content.decode(codec or "utf-8"), ""
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
    if codec is None:
        problem = f"states no known encoding and is not UTF-8, read as Windows-1252: {reason}"
        return content.decode("cp1252", "replace"), problem
    return content.decode(codec, "replace"), f"not in the encoding that it states: {reason}"


def _stated(content: bytes) -> Iterator[str]:
    from selectolax.lexbor import LexborHTMLParser

    for meta in LexborHTMLParser(content[:STATED_WITHIN]).css("meta[charset], meta[http-equiv=content-type i]"):
        found = STATED_CHARSET.search(meta.attributes.get("content") or "")
        yield meta.attributes.get("charset") or (found[1] if found else "")
    if declared := XML_DECLARATION.match(content):
        yield declared[1].decode("ascii", "replace")


def _find_codec(label: str) -> str | None:
    try:
        known = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):  # an unknown one; a NUL
        return None
    found = WEB_ENCODINGS.get(known, known)
    if WEB_CODECS.fullmatch(found):
        return found
    return None


def read_html_text(html: str | bytes, path: Path, has_anchors: bool = True) -> Document:
    """Return HTML as a document, whose title is its h1, else its <title>, else the file's name.

    If there are several h1, the title is <title>, unless that begins with the first h1.

    Bytes are UTF-8.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    marks = page_marks(tree)
    unlisted = "links to other pages alone" if marks.is_list else ""
    if tree.css_first(ROBOTS) is not None:
        unlisted = "noindex"
    has_list = tree.css_first(".toctree-wrapper") is not None
    remove_chrome(tree, has_alternates=marks.has_alternates)
    found = (_outermost(tree.css(place)) for place in MAIN)
    root = next((nodes[0] for nodes in found if len(nodes) == 1), tree.body)
    reader = _Reader(has_anchors)
    if root is not None:
        reader.read(root)
    title = _title(tree, reader.blocks) or path.stem
    link = tree.css_first(CANONICAL)
    canonical = "" if link is None else (link.attributes["href"] or "").strip()
    parts = [DocumentPart("".join(reader.pieces), reader.blocks)]
    if has_list and not any(isinstance(each, Block) for each in reader.blocks):
        unlisted = unlisted or "links to other pages alone"
    return Document(title, parts, page_columns(tree, is_post=marks.is_post), canonical=canonical, unlisted=unlisted)


def _title(tree: "LexborHTMLParser", blocks: list[Heading | Block]) -> str:
    """Return the title of a page, "" if it has none."""
    highest = [each.text for each in blocks if isinstance(each, Heading) and each.level == 1]
    named = tree.css_first("title")
    stated = "" if named is None else " ".join(named.text().split())
    is_part = len(highest) > 1 and stated and not stated.casefold().startswith(highest[0].casefold())
    if highest and not is_part:
        return highest[0]
    return stated


def _outermost(nodes: "list[LexborNode]") -> "list[LexborNode]":
    """Return the elements that are in no other one of these, which are in the order of the page."""
    found: list[LexborNode] = []
    for node in nodes:
        around = node.parent
        while around is not None and (not found or around.mem_id != found[-1].mem_id):
            around = around.parent
        if around is None:
            found.append(node)
    return found


class _Reader:
    def __init__(self, has_anchors: bool) -> None:
        self.pieces: list[str] = []
        self.blocks: list[Heading | Block] = []
        self._has_anchors = has_anchors
        self._length = 0
        self._inline: list[str] = []  # the text since the last block
        self._mark = ""  # "- " at the start of a list item
        self._unclosed: LexborNode | None = None  # a heading whose text ends at the next block
        self._terms: list[bool] = []  # for each description list around, whether its terms are headings
        self._anchors: dict[int, str] = {}  # the first element of each anchor of the page, to which a link leads
        self._repeated: set[int] = set()  # elements with the anchor of an earlier one
        self._open: list[tuple[int, str]] = []  # the anchors since the last block, and how much of _inline is before

    def read(self, root: "LexborNode") -> None:
        if self._has_anchors:
            known = set()
            for node in root.css(ANCHORED):
                anchor = node.id or node.attributes.get("name")
                if anchor in known:
                    self._repeated.add(node.mem_id)
                elif anchor:
                    known.add(anchor)
                    self._anchors[node.mem_id] = anchor
        anchors = self._anchors
        whole = None  # an element that is read already; its content is skipped
        for node, event in _walk(root):
            if whole is not None:
                if event == END and node.mem_id == whole:
                    whole = None
                continue
            tag = node.tag or ""
            if tag == "-text":
                self._inline.append(_text(node))
            elif tag == "br":
                self._inline += [LINE_BREAK] if event == BEGIN else []
            elif tag == "math" and event == BEGIN:
                self._inline.append(f" {_line(node)} ")
                whole = node.mem_id
            elif f"|{tag}|" in BLANK:
                self._inline.append(" ")
                # that of an image in a link, such as "Up", often says where the link leads
                if tag == "img" and event == BEGIN and (node.parent is None or node.parent.tag != "a"):
                    self._inline.append(f"{node.attributes.get('alt') or ''} ")
            elif f"|{tag}|" in INLINE:
                # the link "¶" is a gap, and can have the anchor
                if event != END and node.mem_id in anchors and (event == BEGIN or tag == "a"):
                    self._note(node)
            else:
                self._end_block()
                if node.mem_id in anchors:
                    self._note(node, event)
                if event == BEGIN and self._read_whole(node):
                    whole = node.mem_id
                elif event == END and self._unclosed is not None and node.mem_id == self._unclosed.mem_id:
                    self._unclosed = None
                elif tag == "dl" and event != GAP:
                    if event == END:
                        self.blocks.append(Heading(self._length, self._length, self._level(), "", ""))
                        self._terms.pop()
                    else:
                        self._terms.append(self._has_terms(node))
                elif tag == "li":
                    self._mark = "- " if event == BEGIN else ""

    def _note(self, node: "LexborNode", event: int = BEGIN) -> None:
        """Note the anchor of an element that begins. At the end of a block that has no text, forget it."""
        anchor = self._anchors[node.mem_id]
        if event == END:
            self._open = [each for each in self._open if each[1] != anchor]
        elif event == BEGIN and not (f"|{node.tag}|" in WRAPPERS and node.css_first(ALL_HEADINGS) is not None):
            self._open.append((len(self._inline), anchor))

    def _end_block(self) -> None:
        if not self._inline:
            return
        text = "".join(self._inline)
        if LINE_BREAK in text:
            text = "\n".join(" ".join(line.split()) for line in text.split(LINE_BREAK)).strip()
        else:
            text = " ".join(text.split())
        anchor = ""
        if self._open:
            anchor = self._end_anchors() if text else ""
            self._open = [(0, each) for _, each in self._open]
        self._inline.clear()
        if text and self._unclosed is not None:
            first, _, text = text.partition("\n")
            self._head(self._unclosed, first, anchor)
            self._unclosed = None
            anchor = ""
        if text:
            self._write(self._mark + text, anchor)
            self._mark = ""

    def _end_anchors(self) -> str:
        """Return the anchor at the beginning of the text of a block. Those after its end stay for the next block."""
        before = [each for place, each in self._open if not "".join(self._inline[:place]).strip()]
        after = [each for each in self._open if not "".join(self._inline[each[0] :]).strip()]
        self._open = after
        return before[0] if before else ""

    def _take_anchors(self) -> list[str]:
        """Return the anchors since the last block, which are those of the next one."""
        taken = [anchor for _, anchor in self._open]
        self._open.clear()
        return taken

    def _first_anchor(self, node: "LexborNode") -> str:
        """Return the first anchor of an element that no text is before."""
        if self._anchors and node.css_first(ANCHORED) is not None:
            for each in node.traverse(include_text=True):
                if each.tag == "-text" and _text(each).strip():
                    break
                if each.mem_id in self._anchors:
                    return self._anchors[each.mem_id]
        return ""

    def _has_terms(self, node: "LexborNode") -> bool:
        """Return whether the terms of a description list are headings: one of them has an anchor."""
        previous = None
        for each in node.iter() if self._anchors else ():
            if each.tag == "dt" and (self._first_anchor(each) or (previous is not None and previous.tag == "a")):
                return True
            previous = each if each.mem_id in self._anchors else None
        return False

    def _read_whole(self, node: "LexborNode") -> bool:
        """Read an element if it is one block; return False if not."""
        if node.tag in HEADINGS or (node.tag == "dt" and (node.id or (self._terms and self._terms[-1]))):
            text = _line(node) or _line(node, with_buttons=True)
            if node.tag != "dt" and (len(text) > LONGEST_HEADING or node.css_first(NO_HEADING) is not None):
                self._unclosed = node
                return False
            if text:
                self._head(node, text, next(reversed(self._take_anchors()), ""))
        elif node.tag == "pre":
            self._write_code(_inner_text(node).strip())
        elif node.tag == "table" and not node.css("table table, h1, h2, h3, h4, h5, h6, pre"):
            self._write_table(node)
        else:
            return False
        return True

    def _head(self, node: "LexborNode", text: str, before: str) -> None:
        """Write a heading. `before` is the anchor directly before it."""
        anchor = ""
        if self._has_anchors:
            anchor = self._anchor(node) or before
        self.blocks.append(Heading(*self._append(text), HEADINGS.get(node.tag or "", self._level()), text, anchor))

    def _anchor(self, heading: "LexborNode") -> str:
        """Return the id of a heading: its own, the id of the section that it begins, or one within it.

        An id that an earlier element has does not count. In XHTML that is read as HTML, `<a id="first"/>` stays open,
        and its id is also in the next heading.
        """
        if own := self._own_anchor(heading):
            return own
        place, parent = heading, heading.parent
        while parent is not None and parent.tag in ("section", "div", "article", "header", "hgroup"):
            first = next((child for child in parent.iter() if child.tag != "span"), None)
            if first is None or first.mem_id != place.mem_id:
                break
            if of_section := self._own_anchor(parent):
                return of_section
            place, parent = parent, parent.parent if parent.tag in ("header", "hgroup") else None
        return next(filter(None, map(self._own_anchor, heading.css(ANCHORED))), "")

    def _own_anchor(self, node: "LexborNode") -> str:
        """Return the anchor of an element, "" if it has none or an earlier element has it."""
        if node.mem_id in self._repeated:
            return ""
        return node.id or (node.tag == "a" and node.attributes.get("name")) or ""

    def _level(self) -> int:
        return min(len(HEADINGS) + len(self._terms), DEEPEST)

    def _write_table(self, node: "LexborNode") -> None:
        """Write a table: its caption, and a part for each row that has a text."""
        caption = node.css_first("caption")
        anchors = self._take_anchors()  # those before the table, and its own
        if caption is not None and (text := _line(caption)):
            self._write(text, next(iter(anchors), ""))
            anchors = []
        cells = (([_line(cell) for cell in row.css("th, td")], row) for row in node.css("tr"))
        lines = [(" | ".join(texts), row) for texts, row in cells if any(texts)]
        has_anchors = bool(self._anchors) and node.css_first(ANCHORED) is not None
        rows: list[Block] = []
        for text, row in lines:
            own = self._first_anchor(row) if has_anchors else ""
            rows.append(self._block(text, "\n" if rows else "\n\n", own or next(iter(anchors), "")))
            anchors = []
        if rows:
            header = "" if lines[0][1].css("td") else lines[0][0]
            self.blocks.append(Block(rows[0].start, rows[-1].end, tuple(rows), header, rows[0].anchor))

    def _block(self, text: str, gap: str, anchor: str) -> Block:
        start, end = self._append(text, gap)
        return Block(start, end, anchor=anchor, is_entry=bool(anchor) and _is_entry(text, anchor))

    def _append(self, text: str, gap: str = "\n\n") -> tuple[int, int]:
        self.pieces += [gap, text] if self.pieces else [text]
        self._length += len(text) + (len(gap) if len(self.pieces) > 1 else 0)
        return self._length - len(text), self._length

    def _write_code(self, text: str) -> None:
        if text:
            start, end = self._append(text, "\n" if self._mark else "\n\n")
            parts = [Block(start + part.start, start + part.end) for part in code_parts(text, 0, len(text))]
            anchor = next(iter(self._take_anchors()), "")
            if parts:
                parts[0] = replace(parts[0], anchor=anchor)
            self.blocks.append(Block(start, end, tuple(parts), anchor=anchor))

    def _write(self, text: str, anchor: str) -> None:
        self.blocks.append(self._block(text, "\n" if self._mark else "\n\n", anchor))


def _walk(root: "LexborNode", with_buttons: bool = False, inside: int = 0) -> Iterator[tuple["LexborNode", int]]:
    """Yield each node below an element at its BEGIN and, unless it is text, at its END.

    A visible element that is boilerplate is one GAP. `inside` counts the elements around the root that make headers
    content. Pages can be nested deeply, so nothing is recursive. The last end is the element's own.
    """
    inside += _is_content(root, root.attributes)
    stack = [(root, True, 0), (root.first_child, False, 0)]
    while stack:
        node, is_end, left = stack.pop()
        if node is None:
            continue
        if is_end:
            inside -= left
            yield node, END
            continue
        if node is not root:
            stack.append((node.next, False, 0))
        tag = node.tag
        if tag == "-text":
            yield node, BEGIN
            continue
        named = node.attributes if node.is_element_node else NO_ELEMENT
        if f"|{tag}|" in INVISIBLE or _is_hidden(named):
            continue
        is_outside = f"|{tag}|" in OUTSIDE and not inside
        if is_outside or (_is_boilerplate(node, named) and not (with_buttons and tag == "button")):
            yield node, GAP
            continue
        entered = _is_content(node, named)
        inside += entered
        yield node, BEGIN
        stack += [(node, True, entered), (node.first_child, False, 0)]


def _is_hidden(named: Mapping[str, str | None]) -> bool:
    """Return whether an element is not displayed. The panel of a tab is not displayed until its tab is selected."""
    if "hidden" in named and named["hidden"] != "until-found" and named.get("role") != "tabpanel":
        return True
    style = named.get("style")
    return bool(style and NOT_DISPLAYED.search(style))


def _is_content(node: "LexborNode", named: Mapping[str, str | None]) -> bool:
    return f"|{node.tag}|" in CONTENT or named.get("role") == "main"


def _is_boilerplate(node: "LexborNode", named: Mapping[str, str | None]) -> bool:
    if IGNORED in named:
        return True
    if f"|{node.tag}|" in BOILERPLATE:
        return node.tag != "form" or node.css_first(PAGE_ELEMENTS) is None
    if f"|{named.get('role')}|" in ROLES:
        return True
    classes = named.get("class")
    return bool(classes and (GENERATED.search(classes) or (node.tag == "a" and PERMALINK.search(classes))))


def _text(node: "LexborNode") -> str:
    return (node.text_content or "").replace("\xad", "")  # soft hyphens


def _inner_text(node: "LexborNode", with_buttons: bool = False) -> str:
    """Return the text in an element, with a line break at each element that is not inline, so that words stay apart."""
    pieces = [""]
    for each, event in _walk(node, with_buttons, inside=1):
        if each.tag == "-text":
            pieces.append(_text(each))
        elif each.tag == "br":
            pieces += ["\n"] if event == BEGIN else []
        elif (f"|{each.tag}|" not in INLINE or _begins_line(each, event)) and not pieces[-1].endswith("\n"):
            pieces.append("\n")
    return "".join(pieces)


def _begins_line(node: "LexborNode", event: int) -> bool:
    """Return whether an inline element is a line of code, as highlighters write it."""
    return event == BEGIN and bool(CODE_LINE.search(node.attributes.get("class") or ""))


def _line(node: "LexborNode", with_buttons: bool = False) -> str:
    return " ".join(_inner_text(node, with_buttons).split())


def _is_entry(text: str, anchor: str) -> bool:
    """Return whether a text begins with all words of its anchor, such as `SQLITE_BUSY` with the anchor `busy`."""
    words = ANCHOR_WORD.findall(anchor.casefold())
    if not any(len(word) > 1 and not word.isdecimal() for word in words):
        return False
    return set(words) <= set(ANCHOR_WORD.findall(text[:ENTRY_CHARACTERS].casefold()))
