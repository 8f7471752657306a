"""Documents that take hours or gigabytes to read: what is ours is repaired, the rest is skipped with its reason."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from export import subprocess_call
from export.corpus import Corpus
from export.documents import reading
from export.documents.reading import Reading, read_documents
from export.documents.splitter import Splitter
from function.engine.bundle import PASSAGES
from function.engine.passages import Passages
from tests.export.documents.files import paragraph, write_docx, write_pdf
from tests.export.documents.test_odd_files import write_odd_files
from tests.project import ROOT

WORDS = "some words of a text"

Read = Callable[..., Corpus]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (folder := tmp_path / "docs").mkdir()
    (folder / "z.md").write_text(WORDS)
    return folder


@pytest.fixture
def read(folder: Path, tmp_path: Path, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return what reads the folder in processes of their own, with these limits."""
    monkeypatch.setattr(reading, "in_workers", subprocess_call.in_workers)

    def read(seconds: int = 60, memory: int = 10**9) -> Corpus:
        limited = Reading(make_splitter(40), seconds=seconds, memory=memory)
        corpus = read_documents(folder, tmp_path / PASSAGES, limited)
        assert WORDS in corpus.texts  # the last document was read
        return corpus

    return read


def merged(levels: int) -> str:
    """Return front matter in which each mapping has the one before it twice."""
    levels_of_keys = "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, levels))
    return f"---\na0: &a0 {{x: 1}}\n{levels_of_keys}own: kept\n---\n"


@pytest.mark.parametrize(
    "text",
    [
        "<!-- a -->" * 40 + " ",
        merged(40),
        "# a" + " " * 100_000 + "b\n\n",
        "# {" + "#a" * 30_000 + "\n\n",
    ],
    ids=["comments", "merge keys", "blanks in a heading", "anchors in a heading"],
)
def test_no_pattern_takes_longer_than_its_text_is_long(text: str, folder: Path, read: Read) -> None:
    (folder / "a.md").write_text(f"{text}words that are found\n")
    corpus = read(seconds=4)
    assert corpus.unreadable == ()
    assert "words that are found" in "".join(corpus.texts)


def test_text_between_comments_is_no_comment(folder: Path, read: Read) -> None:
    (folder / "a.md").write_text("<!-- one -->\n<!-- two -->\n\n<!-- three --> said <!-- four -->\n")
    assert list(read().texts) == ["<!-- three --> said <!-- four -->", WORDS]


def test_a_document_that_takes_too_long_is_skipped(folder: Path, read: Read) -> None:
    (folder / "a.html").write_text("<div>" * 60_000 + WORDS)
    assert read(seconds=1).unreadable == ("a.html: it takes more than 4 s of processor time",)


def test_documents_that_take_too_much_memory_are_skipped(folder: Path, read: Read) -> None:
    write_pdf(folder / "a.pdf", [["a" * 100] * 60_000], is_compressed=True)
    (folder / "b.txt").write_text("a\n\n" * 1_000_000)
    pdf, text = read(memory=100_000_000).unreadable
    assert pdf.startswith("a.pdf: its reader crashed (exit code -")
    assert pdf.endswith("): it is broken, or takes more than 100 MB of memory")
    assert text == "b.txt: it takes more than 145 MB of memory"


def test_the_limits_grow_with_the_size_of_the_file(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    small, large, zipped = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.docx"
    for path, size in ((small, 0), (large, 3_000_000), (zipped, 3_000_000)):
        path.write_bytes(b" " * size)
    limits = Reading(make_splitter(40), seconds=5, memory=100).limits
    assert [limits(path) for path in (small, large, zipped)] == [(5, 100), (35, 45_000_100), (35, 300_000_100)]


def test_a_folder_of_odd_files_is_read_in_one_run(folder: Path, bundle_copy: Path) -> None:
    write_odd_files(folder)
    (folder / "comments.md").write_text("<!-- a -->" * 32 + f" {WORDS}\n")
    (folder / "merged.md").write_text(merged(40) + WORDS)
    (folder / "nested.html").write_text("<div>" * 20_000 + WORDS)
    write_pdf(folder / "bomb.pdf", [["a" * 100] * 2_000_000], is_compressed=True)
    write_pdf(folder / "invoices.pdf", [["ACME", f"Invoice {1001 + n}"] for n in range(6)])
    write_pdf(folder / "slides.pdf", [[f"Question {n}"] for n in range(1, 7)])
    write_docx(folder / "large.docx", paragraph(WORDS))
    with ZipFile(folder / "large.docx", "a", ZIP_DEFLATED) as archive:
        archive.writestr("word/main.bin", b"0" * 88_000_000)
    write_docx(folder / "long.docx", paragraph(WORDS) * 400_000)

    arguments = ["corpus", "--corpus", folder, "--out", bundle_copy]
    measure = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    measure += "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    command = [sys.executable, "-c", measure, sys.executable, "-m", "export", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"COLUMNS": "300", "PATH": ""})
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.split("peak ")[-1])  # kilobytes of the largest process
    assert peak < 500_000
    passages = Passages(bundle_copy / PASSAGES)
    found = {str(passages[row].metadata["path"]) for row in range(len(passages))}
    not_read = {line.split()[2].rstrip(":") for line in done.stdout.splitlines() if line.startswith("not read")}
    assert {"bomb.pdf", "large.docx", "long.docx"} <= not_read
    assert {"comments.md", "invoices.pdf", "merged.md", "nested.html", "slides.pdf", "z.md"} <= found
    skipped = sum(int(number) for number in re.findall(r"(\d+) skipped", done.stdout))
    assert len(found) + len(not_read) + skipped == len([path for path in folder.rglob("*") if path.is_file()])
