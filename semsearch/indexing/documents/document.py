"""What a reader of one format returns: a document's text, and where its headings and blocks are in it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unicodedata import category, normalize
from urllib.parse import quote, unquote, urlsplit

from semsearch.indexing.documents.markup import EditedText, Markup


class UnreadableError(Exception):
    """A document without a text that can be read. The message is the reason, such as "encrypted"."""


class NoTextError(UnreadableError):
    """A document that was read and has no text."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at the characters start to end of a part's text.

    A heading without a text ends the sections of its level and below: what follows belongs to the section around them.
    """

    start: int
    end: int
    level: int  # 1 is the highest
    text: str
    anchor: str  # "" if it has none


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, a block of code or a table: the characters start to end, without blanks around them."""

    start: int
    end: int
    parts: tuple["Block", ...] = ()  # rows or items, between which a block that is too long is divided
    header: str = ""  # the header of a table, embedded again with the rows after a division


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A page of a PDF, or all of another document."""

    text: str
    blocks: list[Heading | Block]
    offset: int = 0  # characters of the document before this part
    page: int | None = None  # from 1
    markup: Markup | None = None  # the markup of the text; None for a plain text
    edited: EditedText | None = None  # where the text is in the file, if it was edited


@dataclass(frozen=True, slots=True)
class Document:
    """A document. A section can continue in the next part."""

    title: str
    parts: Iterable[DocumentPart]
    fields: dict[str, object] = field(default_factory=dict)  # metadata in the front matter
    running_lines: int = 0  # lines left out because they repeat at the edges of pages
    problem: str = ""  # what of it could not be read
    canonical: str = ""  # the address that a page states
    unlisted: str = ""  # why it is not to be found, such as "noindex"


def trimmed(text: str, start: int, end: int, parts: tuple[Block, ...] = (), header: str = "") -> list[Block]:
    """Return the block at these characters without the blanks around it, no block if there are only blanks."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        return [Block(start, end, parts, header)]
    return []


DEFINITION = re.compile(r"(?:\A|\n[ \t]*\r?\n)(?=[^\s})\]])")  # a line of code without indentation, after an empty line


def code_parts(text: str, start: int, end: int) -> tuple[Block, ...]:
    """Return the parts of code, such as functions and classes, between which it is divided if it is too long.

    In most languages each begins without indentation after an empty line.
    """
    begins = [start, *(found.end() for found in DEFINITION.finditer(text, start, end) if found.end() > start), end]
    return tuple(part for bounds in pairwise(begins) for part in trimmed(text, *bounds))


def decode(content: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark. Raises UnreadableError for others."""
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8: {error.reason} at byte {error.start}") from error


def valid_unicode(text: str) -> str:
    r"""Return a text with each pair of surrogates, which YAML and JSON can escape as "\ud83e\udd86", as one
    character.

    Other surrogates, which UTF-8 does not have, are replaced by U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


GITHUB, MKDOCS, SPHINX, DOCUSAURUS = ANCHORS = ("github", "mkdocs", "sphinx", "docusaurus")
LIKE_GITHUB = (GITHUB, DOCUSAURUS)  # styles with the anchors of GitHub
OWN_ANCHORS = (MKDOCS, DOCUSAURUS)  # styles that heed an anchor of the author's own
MARKDOWN, HTML, RST = (".md", ".markdown", ".mdx"), (".html", ".htm"), ".rst"
AS_FILES = "/blob/"  # part of a base URL of GitHub or GitLab, which show files under their own names
GITHUB_KEEPS = frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"])  # categories of Unicode
SPHINX_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ħ": "h", "\u0131": "i", "ł": "l", "ŧ": "t", "ß": "sz", "æ": "ae", "œ": "oe"}
)


class Slugs:
    """The anchors of one document's headings. Call it with each heading in turn, since a repeated one gets a number."""

    def __init__(self, style: str) -> None:
        """Take one of ANCHORS."""
        self._style = style
        self._taken: dict[str, int] = {}  # anchors so far, and how often each was repeated

    def __call__(self, heading: str, own: str = "") -> str:
        """Return the anchor of the next heading; `own` is the anchor that its author chose, if any."""
        if self._style != DOCUSAURUS:  # it removes an icon beside a heading, but not the blank between them
            heading = heading.strip()
        slug = own or self._slug(heading)
        anchor = slug
        while anchor in self._taken or (not anchor and self._style not in LIKE_GITHUB):
            anchor = self._next(slug, anchor)
        self._taken[anchor] = 0
        return anchor

    def _slug(self, heading: str) -> str:
        if self._style in LIKE_GITHUB:
            kept = (char for char in heading.lower() if char in "- " or category(char) in GITHUB_KEEPS)
            return "".join(kept).replace(" ", "-")
        written = heading
        if self._style == SPHINX:
            written = heading.lower().translate(SPHINX_LETTERS)
        slug = normalize("NFKD", written).encode("ascii", "ignore").decode().lower()
        if self._style == MKDOCS:
            return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", slug).strip())
        return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", slug))

    def _next(self, slug: str, anchor: str) -> str:
        if self._style == MKDOCS:
            numbered = re.fullmatch(r"(.+)_(\d+)", anchor)
            if numbered:
                return f"{numbered[1]}_{int(numbered[2]) + 1}"
            return f"{anchor}_1"
        counted = ""
        if self._style in LIKE_GITHUB:
            counted = slug
        self._taken[counted] = self._taken.get(counted, 0) + 1
        if self._style in LIKE_GITHUB:
            return f"{counted}-{self._taken[counted]}"
        return f"id{self._taken[counted]}"


def page_address(path: str, base_url: str, style: str, canonical: str = "") -> str:
    """Return the address of a page, whose path is relative to the folder; without a base URL a relative address.

    The canonical address of an HTML page says whether its own ends in .html, in a slash or in neither. If it is that of
    another page, it is the address.

    Pages written as HTML are served under their own names, except for an index.html, which is its folder's page.
    A Markdown file loses its suffix, as the style has it; one of reStructuredText becomes a page of Sphinx. Both keep
    their names where the base URL shows files, and in the style of GitHub without a base URL: then nothing says that a
    site makes pages of the files. Bytes of the path that are not UTF-8 stay as they are.
    """
    if base_url.startswith("file:"):  # files on this machine
        return f"{base_url.rstrip('/')}/{quote(path, errors='surrogateescape')}"
    folder, slash, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    suffix = dot + suffix.lower()
    if suffix in HTML:
        bare = (folder if stem == "index" else folder + slash + stem).strip("/")
        if stem == "index":
            path = folder + slash
        stated = unquote(urlsplit(canonical).path)
        for own in (bare, bare + "/", bare + suffix, folder + slash + name):
            if canonical and bare and f"/{stated}".endswith(f"/{own}"):
                path = own
                break
        else:
            if canonical and bare:
                return canonical
    elif suffix == RST and AS_FILES not in base_url and (base_url or style == SPHINX):
        path = folder + slash + stem + ".html"
    elif suffix in MARKDOWN and AS_FILES not in base_url and (base_url or style != GITHUB):
        is_index = stem in ("index", "_index") or (stem.lower() == "readme" and style != SPHINX)
        path = (
            folder
            + slash
            + ("" if is_index else stem + {GITHUB: "", DOCUSAURUS: "", MKDOCS: "/", SPHINX: ".html"}[style])
        )
    address = quote(path, errors="surrogateescape")
    return (base_url.rstrip("/") + "/" if base_url else "") + address or "./"


BLANK_LINES = re.compile(r"\n[^\S\n]*\r?\n\s*|\f|\Z")


def read_plain(path: Path) -> Document:
    """Return a text file as a document, called by its name. Raises UnreadableError if it is not UTF-8."""
    text = decode(path.read_bytes())
    return Document(path.stem, [DocumentPart(text, list(paragraphs(text)))])


def paragraphs(text: str, start: int = 0) -> Iterator[Block]:
    """Yield the paragraphs of a text from the character `start` on."""
    for gap in BLANK_LINES.finditer(text, start):
        yield from trimmed(text, start, gap.start())
        start = gap.end()
