"""MDX: the edits that make Markdown of it, as Docusaurus, Nextra and Starlight write it.

Imports, exports, comments, tags and expressions leave; the text inside elements stays, and so do strings in braces and
the labels of tabs. The text of an imported partial stands where it is used. This is no parser of JavaScript: what is
not closed stays as text. Left out: what a component computes, and code that is imported from a file (raw-loader).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from semsearch.indexing.documents.document import UnreadableError, decode
from semsearch.indexing.documents.front_matter import read_front_matter
from semsearch.indexing.documents.looks import Looks, place_of, read_beside, site_around
from semsearch.indexing.documents.markup import Edit, EditedText

FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})[^\n]*$", re.MULTILINE)
# what can begin something that is no text: a fence, code in a line, a statement, a comment, an expression, a tag
CODE_BEGINS = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})|(?P<code>`+)|^(?P<statement>import(?:\s+\w|\s*[*{'\"])|export\s+(?:\w+\b|[{*]))"
    r"|(?P<escape>\\[\\`{<])|(?P<comment>\{\s*/\*[^*]*(?:\*(?!/)[^*]*)*\*/\s*\})"
    r"|(?P<expression>\{)(?!#)|(?P<tag><)(?=/?[A-Za-z]|/?>)(?![A-Za-z][\w+.-]*:|[\w.+-]+@)",
    re.MULTILINE,
)
TAG_NAME = re.compile(r"</?\s*([\w.:-]*)")
JS_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|/\*.*?\*/|//[^\n]*", re.DOTALL)
JAVASCRIPT = re.compile(rf"(?:{JS_STRING.pattern})|[{{}}()\[\]>]|\n[ \t]*(?=\n|\Z)", re.DOTALL)
LITERAL = re.compile(r"\{\s*(?:\"([^\"]*)\"|'([^']*)'|`([^`$]*)`)\s*\}")
HEADING_ID = re.compile(r"\{\s*/\*\s*(#[\w.:-]+)\s*\*/\s*\}")
ATTRIBUTE = re.compile(r"\s(label|title|alt)=(?:\"([^\"]*)\"|'([^']*)')")
PARTIAL_IMPORT = re.compile(r"^import\s+(\w+)\s+from\s+['\"]([^'\"]+\.mdx?)['\"];?[ \t]*$", re.MULTILINE)
LONGEST_STATEMENT = 20_000  # characters of a statement, an expression or a tag; a longer one was not closed
MOST_UNCLOSED = 50  # statements, expressions and tags of a file that are not closed; later ones stay as text
MOST_PARTIALS = 5  # levels of partials within partials
HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+")
BLANK_ENTITY = "&#32;"  # a blank that Markdown does not remove
VOID = frozenset(["br", "img", "hr", "input", "source", "wbr", "meta", "link"])
INLINE_TAGS = frozenset(
    ["a", "b", "i", "em", "strong", "code", "kbd", "span", "sub", "sup", "small", "mark", "u", "abbr"]
)
CLOSING = {"(": ")", "{": "}", "[": "]"}


def with_partials(text: str, path: Path, looks: Looks, levels: int = MOST_PARTIALS) -> EditedText:
    """Return MDX with the text of each imported partial where it is used.

    A partial that is outside of the site, or of the file's folder if there is no site, is not read. `looks` gets what
    was looked at.
    """
    imports = PARTIAL_IMPORT.findall(text)
    if not imports or not levels:
        return EditedText(text, ())
    edits: dict[tuple[int, int], Edit] = {}
    site = site_around(path.parent, looks) or path.parent.resolve()
    for name, place in imports:
        source = place.removeprefix("@site/")
        file = place_of(site / source if source != place else path.parent / place, looks)
        if file.is_relative_to(site) and (content := read_beside(file, looks)) is not None:
            partial = _text_of_partial(content, file, looks, levels - 1)
            for found in re.finditer(rf"<{name}\b[^<>]*/>", text):
                edits.setdefault(found.span(), Edit(*found.span(), partial))  # the first import of a name decides
    return EditedText(text, edits.values())


def _text_of_partial(content: bytes, file: Path, looks: Looks, levels: int) -> str:
    try:
        text = decode(content)
    except UnreadableError:  # it is listed where the folder is read
        return ""
    begin = read_front_matter(text)[1]
    return with_partials(text[begin:], file, looks, levels).text.strip()


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of an element: where it is, its name, and by how much it changes the number of open elements."""

    start: int
    end: int
    name: str
    change: int


def find_mdx_edits(text: str) -> Iterator[Edit]:
    """Yield the edits that make Markdown of MDX, in any order."""
    tags: list[Tag] = []
    place = unclosed = 0
    while (found := CODE_BEGINS.search(text, place)) is not None:
        kind, start = str(found.lastgroup), found.start()
        place = found.end()
        if kind == "fence":
            place = _end_of_fence(text, found.start("fence"), found["fence"])
        elif kind == "code":
            place = _end_of_code(text, start, place)
        elif kind == "comment":
            yield Edit(start, place, _text_of_expression(found[0]))
        elif kind in ENDS and unclosed < MOST_UNCLOSED:  # looking for an end takes long
            end = ENDS[kind](text, start)
            if not end:
                unclosed += 1
                continue
            place = end
            if kind == "tag":
                tags.append(_tag(text, start, end))
                yield _edit_of_tag(text, tags[-1])
            elif kind == "expression":
                yield Edit(start, end, _text_of_expression(text[start:end]))
            else:
                yield Edit(start, end)
    yield from _unindented(text, tags)


def _end_of_fence(text: str, start: int, mark: str) -> int:
    """Return the end of a block of code; without a closing fence, that of the text."""
    line = text.find("\n", start)
    if line < 0:
        return len(text)
    for fence in FENCE.finditer(text, line):
        if fence["mark"].startswith(mark):
            return fence.end()
    return len(text)


def _end_of_code(text: str, start: int, end: int) -> int:
    """Return the end of code in a line, or that of its ticks if they are not closed in the paragraph."""
    ticks = text[start:end]
    stop = text.find("\n\n", end)
    close = re.compile(rf"(?<!`){ticks}(?!`)").search(text, end, len(text) if stop < 0 else stop)
    if close is None:
        return end
    return close.end()


def _end_of_statement(text: str, start: int) -> int:
    """Return where the statements from `start` on end: at an empty line outside of brackets. 0 if they do not."""
    depth = 0
    for token in JAVASCRIPT.finditer(text, start, start + LONGEST_STATEMENT):
        mark = token[0]
        if mark in CLOSING:
            depth += 1
        elif mark in CLOSING.values():
            depth -= 1
        elif mark.startswith("\n") and depth <= 0:
            return token.start()
    if len(text) - start < LONGEST_STATEMENT and depth <= 0:
        return len(text)
    return 0


def _end_of(text: str, start: int, closing: str) -> int:
    """Return the place after the closing mark that is outside of brackets and strings; 0 if there is none."""
    depth = 0
    for token in JAVASCRIPT.finditer(text, start, start + LONGEST_STATEMENT):
        mark = token[0]
        if not depth and mark == closing:
            return token.end()
        if not depth and closing == ">" and mark.startswith("\n"):  # an empty line
            return 0
        if mark in CLOSING:
            depth += 1
        elif mark in CLOSING.values():
            depth -= 1
    return 0


ENDS: dict[str, Callable[[str, int], int]] = {
    "statement": _end_of_statement,
    "expression": lambda text, start: _end_of(text, start + 1, "}"),
    "tag": lambda text, start: _end_of(text, start + 1, ">"),
}


def _text_of_expression(expression: str) -> str:
    if own := HEADING_ID.fullmatch(expression):
        return f"{{{own[1]}}}"
    if literal := LITERAL.fullmatch(expression):
        return next(filter(None, literal.groups()), "")
    return ""


def _tag(text: str, start: int, end: int) -> Tag:
    found = TAG_NAME.match(text, start)
    name = found[1] if found else ""
    change = 1
    if text[start + 1] == "/":
        change = -1
    elif text[end - 2] == "/" or name.lower() in VOID:
        change = 0
    return Tag(start, end, name, change)


def _edit_of_tag(text: str, tag: Tag) -> Edit:
    """Return the edit that removes a tag. In a heading, the blank beside it stays, which is a part of its id."""
    line = text[text.rfind("\n", 0, tag.start) + 1 : tag.start]
    if HEADING.fullmatch(line) and text[tag.end : tag.end + 1] == " ":
        return Edit(tag.start, tag.end + 1, BLANK_ENTITY)
    if HEADING.match(line) and line.endswith(" ") and text[tag.end : tag.end + 1] in ("\n", ""):
        return Edit(tag.start - 1, tag.end, BLANK_ENTITY)
    return Edit(tag.start, tag.end, _text_of_tag(text[tag.start : tag.end], tag.name))


def _text_of_tag(tag: str, name: str) -> str:
    """Return what a tag leaves: the label of a tab, the title of a component, the text of an image, or a blank."""
    stated = {found[1]: found[2] or found[3] or "" for found in ATTRIBUTE.finditer(tag)}
    if "alt" in stated:
        return stated["alt"]
    is_component = name[:1].isupper()
    label = stated.get("label") or stated.get("title")
    if is_component and label:
        return f"{label}\n\n"
    if is_component or not name or name.lower() in INLINE_TAGS:
        return ""
    return " "


def _unindented(text: str, tags: list[Tag]) -> Iterator[Edit]:
    """Yield the edits that remove the indentation of what is in elements: MDX has no code by indentation."""
    lines = [0, *(found.end() for found in re.finditer("\n", text)), len(text)]
    indents: list[int | None] = []  # blanks before the content of each open element, None before its first line
    number = 0
    for start, end in pairwise(lines):
        while number < len(tags) and tags[number].start < start:
            if tags[number].change > 0:
                indents.append(None)
            elif tags[number].change < 0 and indents:
                indents.pop()
            number += 1
        content = text[start:end]
        if not indents or not content.strip():
            continue
        indent = len(content) - len(content.lstrip(" "))
        if content.lstrip().startswith("</"):
            yield Edit(start, start + indent)
            continue
        first = indents[-1]
        if first is None:
            first = indents[-1] = indent
        yield Edit(start, start + min(indent, first))
