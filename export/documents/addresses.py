"""Where readers find a page and a heading: addresses and anchors as GitHub, MkDocs and Sphinx make them.

The rules are those of github-slugger, of the toc extension of Python-Markdown, and of docutils with MyST.
"""

import re
from unicodedata import category, normalize
from urllib.parse import quote

GITHUB, MKDOCS, SPHINX = ANCHORS = ("github", "mkdocs", "sphinx")
MARKDOWN, HTML = (".md", ".markdown"), (".html", ".htm")
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
        heading = heading.strip()
        if self._style == GITHUB:
            kept = (char for char in heading.lower() if char in "- " or category(char) in GITHUB_KEEPS)
            slug = "".join(kept).replace(" ", "-")
        else:
            written = heading.lower().translate(SPHINX_LETTERS) if self._style == SPHINX else heading
            slug = normalize("NFKD", written).encode("ascii", "ignore").decode().lower()
            if self._style == MKDOCS:
                slug = own or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", slug).strip())
            else:
                slug = re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", slug))
        anchor = slug
        while anchor in self._taken or (not anchor and self._style != GITHUB):
            anchor = self._next(slug, anchor)
        self._taken[anchor] = 0
        return anchor

    def _next(self, slug: str, anchor: str) -> str:
        """Return the next candidate after an anchor that is taken."""
        if self._style == MKDOCS:
            numbered = re.fullmatch(r"(.+)_(\d+)", anchor)
            return f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{anchor}_1"
        counted = slug if self._style == GITHUB else ""
        self._taken[counted] = self._taken.get(counted, 0) + 1
        return f"{counted}-{self._taken[counted]}" if self._style == GITHUB else f"id{self._taken[counted]}"


def page_address(path: str, base_url: str, style: str) -> str:
    """Return the address of a page, whose path is relative to the folder; without a base URL a relative address.

    Pages written as HTML are served under their own names, except for an index.html, which is its folder's page.
    A Markdown file loses its suffix, as the style has it. It keeps it where the base URL shows files, and in the style
    of GitHub without a base URL: then nothing says that a site makes pages of the files. Bytes of the path that are not
    UTF-8 stay as they are.
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    suffix = dot + suffix.lower()
    if suffix in HTML:
        path = folder + slash if stem == "index" else path
    elif suffix in MARKDOWN and AS_FILES not in base_url and (base_url or style != GITHUB):
        is_index = stem == "index" or (stem.lower() == "readme" and style != SPHINX)
        path = folder + slash + ("" if is_index else stem + {GITHUB: "", MKDOCS: "/", SPHINX: ".html"}[style])
    address = quote(path, errors="surrogateescape")
    return (base_url.rstrip("/") + "/" if base_url else "") + address or "./"
