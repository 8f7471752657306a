"""What authors write in Markdown that CommonMark does not know: the edits that make CommonMark of it.

Comments of HTML and of Obsidian leave, and so do the marks of Obsidian, of the directives of Docusaurus, VitePress and
MyST, of the admonitions and tabs of MkDocs, of the blocks of PyMdown, of attribute lists, and of the shortcodes of Hugo
and the tags of Jekyll. Titles stay. Left out: the arguments of a shortcode, because only its template says which of
them are text.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from semsearch.indexing.documents.addresses import MKDOCS
from semsearch.indexing.documents.markup import Edit

PERCENTS = re.compile(r"(?<![\w%{<])%%(?!%)")  # begins a comment of Obsidian
AFTER_PERCENTS = re.compile(r"[\w%}>]")  # what does not follow its end
# `{{< name >}}` and `{{% name %}}` of Hugo, `{% name %}` of Jekyll, and `{: .class }` of attribute lists
SHORTCODE = re.compile(r"\{\{<[^{}]*>\}\}|\{\{%[^{}]*%\}\}|\{%[^{}]*%\}|\{:\s*(?:[.#][\w-]|[\w-]+=)[^{}\n]*\}")
MARK = re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]*[^\s=])==(?![=\w])")  # ==text== of Obsidian
CALLOUT = re.compile(r"^(?:[ \t]*>)+[ \t]*(\[![\w-]+\][+-]?[ \t]*)", re.MULTILINE)  # > [!note] Title
# :::tip Title, :::tip[Title], :::{note} Title, and the line that ends one
DIRECTIVE = re.compile(
    r"^([ \t]*:{3,}[ \t]*(?:\{?[\w:-]+\}?)?[ \t]*\[?)([^\n\]{}]*)(\]?[ \t]*(?:\{[^\n{}]*\})?[ \t]*)$", re.MULTILINE
)
# !!! note "Title" and ??? note of MkDocs, and === "Tab" of its content tabs
ADMONITION = re.compile(r"( *)((?:!!!|\?\?\?\+?)[ \t]+[\w -]+|===[!+]?)(?:[ \t]+\"([^\"\n]*)\")?[ \t]*\Z")
# a line that begins or ends a block of PyMdown: its slashes, its name and title, and options on the lines after it.
# https://facelessuser.github.io/pymdown-extensions/extensions/blocks/
SLASHES = re.compile(
    r"^[ \t]*(?P<mark>(?P<slashes>/{3,})(?:[ \t]*(?P<name>[a-zA-Z][\w-]*)[ \t]*(?:\|[ \t]*(?P<title>[^\r\n]*))?)?)"
    r"[ \t]*\r?$",
    re.MULTILINE,
)
BLOCK_OPTION = re.compile(r"\r?\n(?: {4}|\t)[ \t]*[\w-]+:[^\n]*")  # an option below the first line of a block
SELECTOR_BLOCK = "html"  # name of the block whose title is a selector
INDENT = 4  # blanks before the lines of an admonition


def find_comments(text: str, code: "Code") -> Iterator[tuple[int, int]]:
    """Yield the ranges of the comments of a text, outside of code, in linear time."""
    place = text.find("<!--")
    while place >= 0:
        end = place
        if place not in code:
            end = text.find("-->", place)
            if end < 0:
                break
            yield place, end + 3
        place = text.find("<!--", end + 1)
    place = 0
    while found := PERCENTS.search(text, place):
        end = text.find("%%", found.end())
        if end < 0:
            break
        place = end
        if found.start() not in code and not AFTER_PERCENTS.match(text, end + 2):
            yield found.start(), end + 2
            place = end + 2


def find_edits(text: str, code: "Code", anchors: str) -> Iterator[Edit]:
    """Yield the edits that make CommonMark of a text, without those of its comments."""
    for found in SHORTCODE.finditer(text):
        if found.start() not in code and not _is_anchor(text, found):
            yield Edit(*found.span())
    for found in MARK.finditer(text):
        if found.start() not in code:
            yield Edit(found.start(), found.start(1))
            yield Edit(found.end(1), found.end())
    for found in CALLOUT.finditer(text):
        if found.start() not in code:
            yield Edit(*found.span(1))
    for found in DIRECTIVE.finditer(text):
        if found.start() not in code:
            yield Edit(*found.span(1))
            yield Edit(*found.span(3))
    yield from _blocks(text, code)
    if anchors == MKDOCS:
        yield from _admonitions(text, code)


def _is_anchor(text: str, found: re.Match[str]) -> bool:
    """Return whether a shortcode is an attribute list with the anchor of a heading, which its reader takes."""
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    return line.startswith("#") and found[0].startswith("{:") and "#" in found[0]


def _blocks(text: str, code: "Code") -> Iterator[Edit]:
    """Yield the edits that leave the titles and contents of blocks of PyMdown that are closed."""
    begun: list[re.Match[str]] = []
    numbers: Counter[str] = Counter()  # how many blocks begin with as many slashes
    for found in SLASHES.finditer(text):
        slashes = found["slashes"]
        if found.start("mark") in code:
            continue
        if found["name"]:
            begun.append(found)
            numbers[slashes] += 1
            continue
        if not numbers[slashes]:
            continue
        begin = begun.pop()
        while begin["slashes"] != slashes:  # one that is not closed
            numbers[begin["slashes"]] -= 1
            begin = begun.pop()
        numbers[slashes] -= 1
        end = begin.end("mark")
        while option := BLOCK_OPTION.match(text, end):
            end = option.end()
        if (begin["title"] or "").strip() and begin["name"] != SELECTOR_BLOCK:
            yield Edit(begin.start("mark"), begin.start("title"))
            yield Edit(begin.end("mark"), end, "\n")
        else:
            yield Edit(begin.start("mark"), end)
        yield Edit(*found.span("mark"))


def _admonitions(text: str, code: "Code") -> Iterator[Edit]:
    """Yield the edits that leave the titles of MkDocs' admonitions and tabs, and unindent their content."""
    place = depth = 0
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        start, place = place, place + len(line)
        if not content.strip():
            continue
        indent = len(content) - len(content.lstrip(" "))
        depth = min(depth, indent // INDENT)
        if depth:
            yield Edit(start, start + depth * INDENT)
        begins = ADMONITION.match(content)
        if begins and len(begins[1]) // INDENT == depth and (depth or start not in code):
            end = start + len(content)
            if begins[3]:
                yield Edit(start + begins.start(2), start + begins.start(3))
                yield Edit(start + begins.end(3), end, "\n")
            else:
                yield Edit(start + begins.start(2), end)
            depth += 1


class Code:
    """The ranges of a text that are code; `place in code` says whether a place is in one."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take ranges in the order of the text, which do not overlap."""
        self._ranges = list(ranges)
        self._starts = [start for start, _ in self._ranges]

    def __contains__(self, place: int) -> bool:
        found = bisect_right(self._starts, place) - 1
        return found >= 0 and place < self._ranges[found][1]
