"""What the reading of a document looks at beside the document: imported partials, lists of versions, sites around it.

Each look is a question with its answer, both texts. An update asks again: if an answer differs, the document is read
again.
"""

from collections.abc import Callable
from hashlib import blake2b, file_digest
from pathlib import Path

from semsearch.indexing.digests import BYTES
from semsearch.indexing.documents.sphinx_suffix import suffix_is_rst
from semsearch.indexing.walking import DOCUSAURUS_CONFIG, find_above

# what a question is about; the path follows
CONTENT_OF, PLACE_OF, SITE_AROUND, SUFFIX_IN = "content ", "place ", "site ", "suffix "

Looks = dict[str, str]  # answers by question


def digest_of(content: bytes) -> str:
    """Return the digest of the content of a file, as `digest_file` does."""
    return blake2b(content, digest_size=BYTES).hexdigest()


def digest_file(path: str) -> str:
    """Return the digest of the content of a file. Raises OSError if it cannot be read."""
    with open(path, "rb") as file:  # noqa: PTH123  a folder can have 100,000 files
        return file_digest(file, lambda: blake2b(digest_size=BYTES)).hexdigest()


def read_beside(path: Path, looks: Looks) -> bytes | None:
    """Return the content of a file, None if there is none."""
    content = path.read_bytes() if path.is_file() else None
    looks[f"{CONTENT_OF}{path.absolute()}"] = "" if content is None else digest_of(content)
    return content


def place_of(link: Path, looks: Looks) -> Path:
    """Return where a path leads, which can be a link."""
    place = link.resolve()
    looks[f"{PLACE_OF}{link.absolute()}"] = str(place)
    return place


def site_around(folder: Path, looks: Looks) -> Path | None:
    """Return the folder of the Docusaurus site that a folder belongs to, None if there is none."""
    site = find_above(folder, DOCUSAURUS_CONFIG)
    looks[f"{SITE_AROUND}{folder.absolute()}"] = "" if site is None else str(site)
    return site


def is_rst_in(folder: Path, looks: Looks) -> bool:
    """Return whether Sphinx reads files named `.txt` in a folder as reStructuredText."""
    found = suffix_is_rst(folder)
    looks[f"{SUFFIX_IN}{folder.absolute()}"] = "rst" if found else ""
    return found


def look_again(question: str) -> str | None:
    """Return the answer to the question of an earlier look, None if the file cannot be read."""
    kind = next(kind for kind in AGAIN if question.startswith(kind))
    found: Looks = {}
    try:
        AGAIN[kind](Path(question.removeprefix(kind)), found)
    except (OSError, RuntimeError):  # a link can lead to itself
        return None
    return found[question]


AGAIN: dict[str, Callable[[Path, Looks], object]] = {
    CONTENT_OF: read_beside,
    PLACE_OF: place_of,
    SITE_AROUND: site_around,
    SUFFIX_IN: is_rst_in,
}
