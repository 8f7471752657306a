"""Where readers find a page and a heading: addresses and anchors as GitHub, MkDocs and Sphinx make them.

The rules are those of github-slugger, of the toc extension of Python-Markdown, and of docutils with MyST.
"""

import re
from unicodedata import normalize
from urllib.parse import quote

GITHUB, MKDOCS, SPHINX = ANCHORS = ("github", "mkdocs", "sphinx")
MARKDOWN, HTML = (".md", ".markdown"), (".html", ".htm")
AS_FILES = "/blob/"  # in a base URL of GitHub or GitLab, which show files under their own names


class Slugs:
    """The anchors of one document's headings. Call it with each heading in turn, since a repeated one gets a number."""

    def __init__(self, style: str) -> None:
        """Take one of ANCHORS."""
        self._style = style
        self._taken: dict[str, int] = {}  # anchors so far, and how often github repeated each
        self._numbered = 0  # by sphinx

    def __call__(self, heading: str, own: str = "") -> str:
        """Return the anchor of the next heading; `own` is the one that the author has given it, if any."""
        match self._style:
            case "github":
                anchor = self._github(heading)
            case "mkdocs":
                anchor = own or self._mkdocs(heading)
            case _:
                anchor = self._sphinx(heading)
        self._taken.setdefault(anchor, 0)
        return anchor

    def _github(self, heading: str) -> str:
        slug = anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        while anchor in self._taken:
            self._taken[slug] += 1
            anchor = f"{slug}-{self._taken[slug]}"
        return anchor

    def _mkdocs(self, heading: str) -> str:
        ascii_only = normalize("NFKD", heading).encode("ascii", "ignore").decode()
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        while anchor in self._taken or not anchor:
            numbered = re.fullmatch(r"(.+)_(\d+)", anchor)
            anchor = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{anchor}_1"
        return anchor

    def _sphinx(self, heading: str) -> str:
        ascii_only = normalize("NFKD", heading.lower()).encode("ascii", "ignore").decode()
        anchor = re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", " ".join(ascii_only.split())))
        while anchor in self._taken or not anchor:
            self._numbered += 1
            anchor = f"id{self._numbered}"
        return anchor


def page_address(path: str, base_url: str, style: str) -> str:
    """Return the address of a page, whose path is relative to the folder; without a base URL a relative address.

    Pages written as HTML are served under their own names, except for an index.html, which is its folder's page.
    A Markdown file loses its suffix, as the style has it.
    """
    stem, dot, suffix = path.rpartition(".")
    folder, _, name = stem.rpartition("/")
    suffix = dot + suffix.lower()
    index = f"{folder}/" if folder else ""
    if suffix in HTML and name == "index":
        path = index
    elif suffix in MARKDOWN and AS_FILES not in base_url:
        is_index = name == "index" or name.lower() == "readme"
        path = index if is_index else {GITHUB: stem, MKDOCS: f"{stem}/", SPHINX: f"{stem}.html"}[style]
    return (base_url.rstrip("/") + "/" if base_url else "") + quote(path)
