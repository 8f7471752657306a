"""Documents that take hours or gigabytes to read: what is ours is repaired, the rest is skipped with its reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.engine.bundle import PASSAGES
from semsearch.indexing import processes as subprocess_call
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.documents import reading
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import Reading, read_documents
from tests.indexing.documents.files import write_pdf

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


@pytest.mark.slow  # tests/indexing/test_processes.py has a worker that takes too long
def test_a_document_that_takes_too_long_is_skipped(folder: Path, read: Read) -> None:
    (folder / "a.html").write_text("<div>" * 150_000 + WORDS)
    assert read(seconds=1).unreadable == ("a.html: it takes more than 8 s of processor time",)


def test_documents_that_take_too_much_memory_are_skipped(folder: Path, read: Read) -> None:
    write_pdf(folder / "a.pdf", [["a" * 100] * 60_000], is_compressed=True)
    (folder / "b.txt").write_text("a\n\n" * 1_000_000)
    pdf, text = read(memory=100_000_000).unreadable
    assert pdf.startswith("a.pdf: its reader crashed (exit code -")
    assert pdf.endswith("): it is broken, or takes more than 100 MB of memory")
    assert text == "b.txt: it takes more than 145 MB of memory"
