"""Files that lost or glued words, or ended the export: each with its passages, or what the summary says about it.

The files that git can show are in tests/data/documents-odd; the fixture `odd` adds those with odd bytes.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from semsearch import Search
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.reading import READERS, format_as_read
from tests.command_line import Run, run
from tests.indexing.documents.files import paragraph, write_docx
from tests.project import needs_linux

FOLDER = Path(__file__).parents[2] / "data" / "documents-odd"

# "path of the headings #anchor: text" of each passage
PASSAGES_OF = {
    "accordion.html": ["What are the fees? #fees: None.\n\nFound nevertheless."],
    "authors.html": [
        "Flight of geese #: Flight of geese",
        "Flight of geese > Ada Moor Ben Lind #: Ada Moor Ben Lind",
        "Flight of geese > Ada Moor Ben Lind > Cora Berg Dan Holt #cora: wrote it",
    ],
    "between-words.html": ["#: one two three four five\n\nsixth inline and softly 漢 kan"],
    "broken-front-matter.md": ["#: They fly."],
    "caption.html": ["#: Fees in euros\n\nsea son | fee\nwinter | 12"],
    "cells.html": ["#: alpha beta | gamma delta epsilon zeta | eta theta"],
    "code-in-cells.html": ["#: a = 1\nb = 2\n\nsets a"],
    "descriptions.html": [
        "#: goose\n\nIt flies.\n\nduck\n\nIt dives.\n\nIt swims.",
        "#: More\n\nIt calls.\n\nA goose\n\nend",
    ],
    "formula.html": ["#: So a = b holds."],
    "front-matter-toml.md": ["#: They fly."],
    "front-matter.md": ["#: They fly."],
    "headings-alone.html": [
        "Opening hours #: Opening hours",
        "Opening hours > Monday to Friday #: Monday to Friday",
        "Opening hours > Never on Sunday #: Never on Sunday",
    ],
    "main-header.html": ["Fees #a: They rose.\n\nA note."],
    "nested-tables.html": ["#: one\n\ntwo\n\nthree\n\nfour\n\nfive"],
    "no-front-matter.md": ["#: Note: a: b: not a field\n\nThey fly."],
    "repeated-headings.md": [
        "Usage #usage: - Usage\n\nThey fly.\n\nUsage\n\nThey dive.",
        "Usage > Usage #usage-3: They call. This section is not small.",
    ],
    "section-header.html": ["Fees #fees: They rose.\n\nA note."],
    "unclosed-heading.html": ["Geese #: They fly in a wedge.\n\nThey call.", "Ducks #: - They dive."],
    "unclosed-last-heading.html": [
        "Geese #: They fly.",
        *["Geese > Ducks #: They dive in lakes, in ponds and along the whole coast."] * 6,
    ],
    "whole-page-form.html": ["Fees #: None."],
    "breaks.docx": ["#: one\ntwo\nthree"],
    "cells.docx": ["#: one two | three"],
    **{
        f"{name}.html": ["#: “é”"]
        for name in ("iso-8859-1", "in-a-comment", "no-encoding", "utf-7", "utf-16", "wrong-then-right")
    },
    **{f"{name}.html": ["#: ґусь"] for name in ("xml-declaration", "mark-before-label", "http-equiv")},
    "utf-8.html": ["#: a \ufffd b"],
}
PROBLEMS = {
    "broken-front-matter.md": "front matter left out, which is not YAML: mapping values are not allowed here",
    "no-encoding.html": "states no known encoding and is not UTF-8, read as Windows-1252: invalid start byte at byte 3",
    "utf-7.html": "states no known encoding and is not UTF-8",
    "utf-8.html": "not in the encoding that it states: invalid continuation byte at byte 25",
}
FIELDS = {
    "front-matter.md": {
        "1": "one", "large": "123456789012345678901234567890", "small": -(2**63),
        "day": "2024-02-29", "birds": ["goose", "🦆", "10000000000000000000000"], "cut": "half \ufffd",
    },
    "front-matter-toml.md": {"large": "123456789012345678901234567890"},
}  # fmt: skip
TITLES = {"front-matter.md": "The goose command in __init__.py <T>", "front-matter-toml.md": "Geese"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files."""
    folder = Path(shutil.copytree(FOLDER, tmp_path_factory.mktemp("odd") / "files"))
    breaks = '<w:t>one</w:t><w:br w:type="page"/><w:t>two</w:t><w:br w:type="column"/><w:t>three</w:t>'
    write_docx(folder / "breaks.docx", f"<w:p><w:r>{breaks}</w:r></w:p>")
    cells = f"<w:tc>{paragraph('one')}{paragraph('two')}</w:tc><w:tc>{paragraph('three')}</w:tc>"
    write_docx(folder / "cells.docx", f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>")
    for name, page in {
        "iso-8859-1.html": b"<meta charset=iso_8859-1:1987><p>\x93\xe9\x94",
        "in-a-comment.html": b"<!-- <meta charset=utf-8> --><meta charset=latin1><p>\x93\xe9\x94",
        "no-encoding.html": b"<p>\x93\xe9\x94",
        "utf-7.html": b"<meta charset=utf-7><p>\x93\xe9\x94",
        "utf-16.html": '<meta http-equiv=content-type content="text/html; charset=utf-16"><p>“é”'.encode(),
        "wrong-then-right.html": b"<meta charset=\xff><meta charset='windows-1252'><p>\x93\xe9\x94",
        "xml-declaration.html": b"<?xml version='1.0' encoding='windows-1251'?><p>" + "ґусь".encode("cp1251"),
        "mark-before-label.html": "<meta charset=windows-1251><p>ґусь".encode("utf-16"),
        "http-equiv.html": b"<meta http-equiv=content-type content=x><meta http-equiv=Content-Type "
        b"content='text/html; charset=windows-1251'><p>" + "ґусь".encode("cp1251"),
        "utf-8.html": b"<meta charset=utf-8><p>a \xe9 b",
    }.items():
        (folder / name).write_bytes(page)
    return folder


@pytest.mark.parametrize("name", PASSAGES_OF)
def test_an_odd_file_has_its_text(name: str, odd: Path, make_splitter: Callable[..., Splitter]) -> None:
    document = READERS[format_as_read(odd / name, {})](odd / name, "github")
    found = list(divide(document, make_splitter(24)))
    assert [f"{' > '.join(each.headings)} #{each.anchor}: {each.text}".lstrip() for each in found] == PASSAGES_OF[name]
    assert document.problem.startswith(PROBLEMS.get(name, ""))
    assert bool(document.problem) == (name in PROBLEMS)
    assert document.fields == FIELDS.get(name, {})
    assert TITLES.get(name) in (None, document.title)


def export(folder: Path, out: Path, *options: object) -> Run:
    return run("index", folder, "--out", out, "--replace", "--base-url", "https://x.org", *options)


def urls_of(bundle: Path) -> dict[object, object]:
    """Return the addresses of documents by their paths."""
    passages = Passages(bundle / PASSAGES)
    return {each["path"]: each["url"] for each in map(passages.metadata, range(len(passages)))}


def test_no_odd_file_ends_the_export(odd: Path, bundle_copy: Path) -> None:
    done = export(odd, bundle_copy)
    assert (done.code, done.err) == (0, "")
    listed = [each.removeprefix("in part").strip() for each in done.out.splitlines() if each.startswith("in part")]
    assert [each.partition(": ")[0] for each in listed] == sorted(PROBLEMS)
    assert urls_of(bundle_copy).keys() == PASSAGES_OF.keys()


@needs_linux("file names that are not UTF-8")
def test_a_name_that_is_not_utf_8_is_escaped_and_its_address_is_not(tmp_path: Path, bundle_copy: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "caf\udce9.md").write_text("They fly.")
    assert export(tmp_path / "docs", bundle_copy).code == 0
    assert urls_of(bundle_copy) == {"caf\\xe9.md": "https://x.org/caf%E9"}


COMPOSED, DECOMPOSED = "\u00e9", "e\u0301"  # é in NFC, as people type it, and in NFD, as macOS can store it


def test_a_name_in_nfd_is_in_nfc_in_the_index_and_its_address_is_that_of_the_file(
    tmp_path: Path, bundle_copy: Path
) -> None:
    folder = tmp_path / "docs" / f"r{DECOMPOSED}sum{DECOMPOSED}s"
    folder.mkdir(parents=True)
    (folder / f"goose-{DECOMPOSED}.txt").write_text("They fly.")
    (folder / f"duck-{DECOMPOSED}.txt").write_text("They dive.")
    assert export(tmp_path / "docs", bundle_copy, "--exclude", f"duck-{COMPOSED}.txt").code == 0
    search = Search(bundle_copy)
    assert len(search) == 1
    path = f"r{COMPOSED}sum{COMPOSED}s/goose-{COMPOSED}.txt"
    hit = search.get(f"{path}:1")
    assert hit is not None
    assert (hit.metadata["path"], hit.metadata["title"]) == (path, f"goose-{COMPOSED}")
    assert unquote(hit.metadata["url"]) == f"https://x.org/r{DECOMPOSED}sum{DECOMPOSED}s/goose-{DECOMPOSED}.txt"


def test_a_page_whose_name_is_in_nfd_is_no_copy_of_itself(tmp_path: Path, bundle_copy: Path) -> None:
    (tmp_path / "site" / "guide").mkdir(parents=True)
    address = quote(f"https://x.org/guide/caf{COMPOSED}", safe=":/")
    page = f"<link rel=canonical href='{address}'><p>They fly."
    (tmp_path / "site" / "guide" / f"caf{DECOMPOSED}.html").write_text(page)
    assert export(tmp_path / "site", bundle_copy).code == 0
    assert urls_of(bundle_copy) == {f"guide/caf{COMPOSED}.html": address}
