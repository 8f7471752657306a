"""The addresses of pages, and the anchors of their headings, as sites have them."""

import re
from unicodedata import category, normalize
from urllib.parse import quote, unquote, urlsplit

GITHUB, MKDOCS, SPHINX, DOCUSAURUS = ANCHORS = ("github", "mkdocs", "sphinx", "docusaurus")
LIKE_GITHUB = (GITHUB, DOCUSAURUS)  # styles with the anchors of GitHub
OWN_ANCHORS = (MKDOCS, DOCUSAURUS)  # styles that heed an anchor of the author's own
MARKDOWN, HTML, RST = (".md", ".markdown", ".mdx"), (".html", ".htm"), ".rst"
FILES_HERE = "file:"  # base URL for the addresses that files have on this machine
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


def page_address(path: str, base_url: str, style: str, canonical: str = "", *, is_rst: bool = False) -> str:
    """Return the address of a page, whose path is relative to the folder; without a base URL a relative address.

    The canonical address of an HTML page says whether its own ends in .html, in a slash or in neither. If it is that of
    another page, it is the address.

    Pages written as HTML are served under their own names, except for an index.html, which is its folder's page.
    A Markdown file loses its suffix, as the style has it; one of reStructuredText becomes a page of Sphinx. Both keep
    their names where the base URL shows files, and in the style of GitHub without a base URL: then nothing says that a
    site makes pages of the files. is_rst: the file has another suffix and is reStructuredText. Bytes of the path that
    are not UTF-8 stay as they are.
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
    elif (suffix == RST or is_rst) and AS_FILES not in base_url and (base_url or style == SPHINX):
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
