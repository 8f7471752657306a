"""A document is read once: an update reads those that have changed, and takes the passages of the others."""

import errno
import json
import os
import random
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from semsearch import index
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing import processes
from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.corpus.corpus import OlderRows, PassageRow
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.documents import folder as document_folder
from semsearch.indexing.documents import recipe, records
from semsearch.indexing.documents.document import Document
from semsearch.indexing.documents.folder import Documents, joined_runs
from semsearch.indexing.documents.looks import Looks, digest_file, digest_of, place_of, read_beside, site_around
from semsearch.indexing.documents.markdown import read_markdown
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import READERS, DocumentOptions, ReadDocument, Reading, read_document
from semsearch.indexing.documents.recipe import key_of_readings
from semsearch.indexing.documents.records import (
    UNSURE_NANOSECONDS,
    FileRecord,
    FileRecords,
    FileState,
    read_records,
    write_records,
)
from semsearch.indexing.options import gather, new_options
from semsearch.indexing.texts import write_corpus

WORDS = "some words of a page"
LATER = 10 * UNSURE_NANOSECONDS


class Updates:
    """An index of the passages of a folder, which is updated again and again."""

    def __init__(self, folder: Path, index: Path, splitter: Splitter, read: list[str]) -> None:
        self.folder = folder
        self.records: FileRecords = {}
        self.read = read  # the files that the last update has read
        self._index, self._splitter = index, splitter

    def reading(self, **options: Any) -> Reading:
        today = options.pop("today", date(2026, 1, 1))
        return Reading(self._splitter, gather(DocumentOptions, new_options(index, options)), today=today)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def update(self, **options: Any) -> list[str]:
        """Update the index, which is then equal to a fresh one, and return the files that were read for it."""
        report = self.report(**options)
        read = [*self.read]
        fresh = Documents(self.folder, self.reading(**options))
        assert write_corpus(fresh, self._index / "fresh")[1] == report
        assert (self._index / "fresh").read_bytes() == (self._index / PASSAGES).read_bytes()
        assert list(fresh.records) == list(self.records)
        assert [each.rows for each in fresh.records.values()] == [each.rows for each in self.records.values()]
        return read

    def report(self, **options: Any) -> ReadReport:
        """Update the index, and return what was counted."""
        self.read.clear()
        has_older = (self._index / PASSAGES).exists()
        documents = Documents(self.folder, self.reading(**options), self._index, self.records if has_older else None)
        new = self._index / "new"
        _, report = write_corpus(documents, new, older=self._index if has_older else None)
        new.replace(self._index / PASSAGES)
        self.records = read_records(write_records(documents.records))
        return report

    def age(self) -> None:
        """Let all files have been read long after their last change."""
        self.records = {name: replace(record, seen=record.seen + LATER) for name, record in self.records.items()}

    def paths(self) -> list[str]:
        """Return the path of the document of each passage."""
        passages = Passages(self._index / PASSAGES)
        return [str(passages[row].metadata["path"]) for row in range(len(passages))]

    def texts(self) -> list[str]:
        passages = Passages(self._index / PASSAGES)
        return [passages[row].text for row in range(len(passages))]


@pytest.fixture
def updates(tmp_path: Path, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch) -> Updates:
    """An index of three pages."""
    read: list[str] = []

    def count(folder: Path, reading: Reading, path: Path) -> ReadDocument:
        read.append(path.relative_to(folder).as_posix())
        return read_document(folder, reading, path)

    monkeypatch.setattr(document_folder, "read_document", count)
    (tmp_path / "index").mkdir()
    found = Updates(tmp_path / "docs", tmp_path / "index", make_splitter(40), read)
    for name in ("a.md", "guide/b.md", "guide/c.md"):
        found.write(name, f"# {name}\n\n{WORDS}\n\n## More\n\n{WORDS}")
    assert found.update() == ["a.md", "guide/b.md", "guide/c.md"]
    return found


def test_documents_that_have_not_changed_are_one_run_of_older_rows_and_start_no_process(
    updates: Updates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_folder, "in_workers", processes.in_workers)
    monkeypatch.delattr(processes, "Worker")
    updates.age()
    documents = Documents(updates.folder, updates.reading(), tmp_path / "index", updates.records)
    assert list(documents.passages()) == [OlderRows(0, 6)]


@pytest.mark.parametrize(
    ("sizes", "workers"),
    [([1], 1), ([1] * 99, 1), ([1] * 100, 2), ([10**6], 1), ([10**6, 1], 2), ([10**6] * 9, 3)],
)
def test_a_process_more_is_started_only_for_documents_that_take_longer_than_its_start(
    sizes: list[int],
    workers: int,
    tmp_path: Path,
    make_splitter: Callable[..., Splitter],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    def start(workers: int, *others: Any) -> Iterator[ReadDocument]:
        started.append(workers)
        yield from repeat(ReadDocument([], FileRecord()))

    monkeypatch.setattr(document_folder, "in_workers", start)
    monkeypatch.setattr(document_folder, "usable_cores", lambda: 3)
    (tmp_path / "other.png").touch()
    for number, size in enumerate(sizes):
        (tmp_path / f"{number}.txt").write_bytes(bytes(size))
    assert not list(Documents(tmp_path, Updates(tmp_path, tmp_path, make_splitter(40), []).reading()).passages())
    assert started == [workers]


def test_only_an_edited_a_new_and_a_renamed_document_are_read(updates: Updates) -> None:
    updates.write("guide/b.md", f"# B\n\n{WORDS} edited")
    assert updates.update() == ["guide/b.md"]
    updates.write("d.md", WORDS)
    (updates.folder / "a.md").unlink()
    (updates.folder / "guide" / "c.md").rename(updates.folder / "guide" / "a.md")
    assert updates.update() == ["d.md", "guide/a.md"]
    assert updates.update() == []


def test_a_file_of_the_same_state_is_not_opened(updates: Updates, monkeypatch: pytest.MonkeyPatch) -> None:
    updates.age()
    opened: list[str] = []
    monkeypatch.setattr(records, "digest_file", opened.append)
    assert updates.report().documents == {"Markdown": 3}
    assert opened == []


def test_a_touched_file_is_compared_by_its_content_once(updates: Updates, monkeypatch: pytest.MonkeyPatch) -> None:
    updates.age()
    os.utime(updates.folder / "a.md", ns=(0, 0))
    assert updates.update() == []
    updates.age()
    monkeypatch.setattr(records, "digest_file", None)
    updates.report()


def test_another_file_of_the_same_size_and_time_is_read(updates: Updates) -> None:
    updates.age()
    path = updates.folder / "a.md"
    before = path.stat()
    other = updates.write("other", path.read_text().replace("words", "birds"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert updates.update() == ["a.md"]


@pytest.mark.parametrize("since", [0, UNSURE_NANOSECONDS, UNSURE_NANOSECONDS + 1])
def test_a_file_that_was_read_within_two_seconds_of_its_change_is_compared_by_its_content(
    since: int, updates: Updates
) -> None:
    path = updates.write("a.md", (updates.folder / "a.md").read_text().replace("words", "birds"))
    status = path.stat()  # the disk states the same after the edit as before it
    state = FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    last = max(state.modified, state.changed)
    updates.records["a.md"] = replace(updates.records["a.md"], state=state, seen=last + since)
    updates.report()
    assert ("birds" in updates.texts()[0]) == (since <= UNSURE_NANOSECONDS)


def test_a_file_that_changes_unnoticed_while_it_is_read_is_read_again(
    updates: Updates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(path: Path, anchors: str) -> Document:
        document, status = read_markdown(path, anchors), path.stat()
        path.write_text(path.read_text().replace("words", "birds"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        return document

    updates.write("a.md", f"{WORDS} edited")
    with monkeypatch.context() as patch:
        patch.setitem(READERS, "Markdown", edit)
        updates.report()
    assert updates.texts()[0] == f"{WORDS} edited"
    assert updates.update() == ["a.md"]


def test_a_document_that_is_written_while_it_is_read_keeps_its_older_record_and_a_new_one_has_none(
    updates: Updates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(path: Path, anchors: str) -> Document:
        document = read_markdown(path, anchors)
        path.write_text(f"{path.read_text()} more")
        return document

    before, texts = updates.records, updates.texts()
    updates.write("a.md", f"{WORDS} edited")
    updates.write("d.md", WORDS)
    with monkeypatch.context() as patch:
        patch.setitem(READERS, "Markdown", append)
        for _ in range(2):
            report = updates.report()
            assert report.outdated == (
                "a.md: it was written while it was read; its 2 older passages stay",
                "d.md: it was written while it was read",
            )
            assert report.refused == ("a.md", "d.md")
            assert (list(updates.records), updates.texts()) == (list(before), texts)
            assert updates.records["a.md"] == before["a.md"]
    assert updates.update() == ["a.md", "d.md"]


def test_a_touched_file_that_cannot_be_compared_is_tried_as_any_other(
    updates: Updates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    updates.age()
    os.utime(updates.folder / "a.md", ns=(0, 0))
    monkeypatch.setattr(records, "digest_file", refuse)
    assert updates.report().outdated == ("a.md: Permission denied; its 2 older passages stay",)


def test_a_document_is_read_when_a_partial_changes_appears_or_goes(updates: Updates) -> None:
    updates.write("p.mdx", "import P from './parts/_p.mdx'\nimport Q from '../q.mdx'\n\n<P />\n\n<Q />\n\nA\n")
    partial = updates.write("parts/.p.mdx", "not this one").with_name("_p.mdx")
    assert updates.update() == ["p.mdx"]
    partial.write_text("import I from './_i.mdx'\n\nOne\n\n<I />")
    assert updates.update() == ["p.mdx", "parts/_p.mdx"]
    assert updates.update() == []
    inner = updates.write("parts/_i.mdx", "Inner")
    assert updates.update() == ["p.mdx", "parts/_i.mdx", "parts/_p.mdx"]
    partial.write_text("Other")
    assert updates.update() == ["p.mdx", "parts/_p.mdx"]
    assert "Other" in "".join(updates.texts())
    inner.unlink()
    assert updates.update() == []
    partial.unlink()
    assert updates.update() == ["p.mdx"]
    updates.write("../q.mdx", "Outside")  # it is not read
    assert updates.update() == []


def test_a_document_is_read_when_its_partial_is_in_the_site_at_last(updates: Updates) -> None:
    updates.write("site/docs/p.mdx", "import P from '@site/_p.mdx'\nimport Q from '../_q.mdx'\n\nA\n\n<Q />\n")
    updates.write("site/_q.mdx", "Around")
    assert updates.update() == ["site/_q.mdx", "site/docs/p.mdx"]
    (updates.folder / "site" / "docusaurus.config.js").touch()
    assert updates.update() == ["site/docs/p.mdx"]
    assert "Around" in updates.texts()[-1]
    link = updates.folder / "site" / "_q.mdx"
    link.rename(updates.folder / "moved.mdx")
    link.symlink_to(updates.folder / "moved.mdx")  # out of the site
    assert "site/docs/p.mdx" in updates.update()
    assert "Around" not in updates.texts()[-1]


def test_documents_of_docusaurus_are_read_again_when_the_versions_change(updates: Updates) -> None:
    updates.write("docusaurus.config.js", "")
    for name in ("docs/a.md", "blog/b.md"):
        updates.write(name, WORDS)
    updates.records = {}  # `key_of_readings` has changed
    updates.update()
    updates.write("versions.json", json.dumps(["2.0"]))
    assert updates.update() == ["docs/a.md"]
    assert updates.report().of_site == {"version": ("current",)}
    updates.write("versions.json", json.dumps(["3.0"]))
    assert updates.update() == ["docs/a.md"]
    (updates.folder / "versions.json").unlink()
    assert updates.update() == ["docs/a.md"]


def test_a_link_in_docusaurus_is_read_again_when_it_leads_to_another_place(updates: Updates) -> None:
    updates.write("docusaurus.config.js", "")
    for name in ("_one/a.md", "_two/a.md"):  # which are left out
        updates.write(name, WORDS)
    link = updates.folder / "docs" / "x.md"
    link.parent.mkdir()
    link.symlink_to("../_one/a.md")
    updates.records = {}
    updates.update()
    updates.age()
    assert updates.update() == []
    link.unlink()
    link.symlink_to("../_two/a.md")
    assert updates.update() == ["docs/x.md"]


def test_pages_of_a_built_site_are_read_again_when_its_versions_change(updates: Updates) -> None:
    updates.write("1.0/a.html", WORDS)
    assert updates.update() == ["1.0/a.html"]
    updates.write("versions.json", json.dumps([{"version": "1.0"}]))
    assert updates.update() == ["1.0/a.html"]
    assert updates.report().of_site == {"version": ("1.0",)}
    (updates.folder / "versions.json").unlink()
    assert updates.update() == ["1.0/a.html"]


def test_a_broken_file_is_tried_again_and_keeps_its_rows_until_it_is_repaired(updates: Updates) -> None:
    before = updates.texts()
    good = (updates.folder / "guide" / "b.md").read_bytes()
    broken = updates.write("guide/b.md", b"\xff" + good[1:])
    updates.write("a.md", WORDS)
    for _ in range(2):
        report = updates.report()
        assert report.unreadable == ("guide/b.md: not UTF-8: invalid start byte at byte 0; its 2 older passages stay",)
        assert report.outdated == report.unreadable
        assert updates.texts() == [WORDS, *before[2:]]
        assert list(updates.records) == ["a.md", "guide/b.md", "guide/c.md"]
    broken.write_bytes(good.replace(b"words", b"birds"))
    assert updates.update() == ["guide/b.md"]
    updates.write("guide/b.md", b"\xff" + good[1:])
    updates.report()
    updates.write("guide/b.md", good.replace(b"words", b"birds"))
    assert updates.update() == []  # what it was before it broke


def test_a_new_broken_file_has_no_rows_and_is_tried_again(updates: Updates) -> None:
    updates.write("d.md", b"\xff")
    assert updates.update() == ["d.md"]
    assert updates.update() == ["d.md"]
    updates.write("d.md", b"d")
    assert updates.update() == ["d.md"]


def test_a_page_that_breaks_keeps_its_language(updates: Updates) -> None:
    updates.write("d.md", f"---\nlang: de\n---\n{WORDS}")
    assert updates.report().of_site == {"language": ("de",)}
    updates.write("d.md", b"\xff")
    assert updates.report().of_site == {"language": ("de",)}


def test_documents_of_a_folder_that_cannot_be_read_keep_their_rows(
    updates: Updates, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, scandir = updates.paths(), os.scandir

    def refusing(path: Any) -> Any:
        if path == str(updates.folder / "guide"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    updates.write("h.md", WORDS)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        for _ in range(2):
            report = updates.report()
            assert report.outdated == ("guide: Permission denied; its 4 older passages stay",)
            assert (report.refused, updates.paths()) == (("guide",), [*before, "h.md"])
    assert updates.update() == []


def test_an_index_without_records_keeps_the_passages_of_broken_documents_and_learns_how_many(
    updates: Updates, tmp_path: Path
) -> None:
    broken = updates.write("guide/b.md", b"\xff")
    documents = Documents(updates.folder, updates.reading(), tmp_path / "index")
    rows = list(documents.passages())
    assert [each.id for each in rows if isinstance(each, PassageRow)][2:4] == [
        "guide/b.md#guidebmd:1",
        "guide/b.md#more:1",
    ]
    assert documents.records["guide/b.md"] == FileRecord(rows=2)
    updates.records = documents.records
    broken.write_text(WORDS)
    assert updates.update() == ["guide/b.md"]


def test_a_document_without_text_is_read_once(updates: Updates) -> None:
    updates.write("a.md", "\n")
    assert updates.update() == ["a.md"]
    assert updates.update() == []
    assert updates.report().unreadable == ("a.md: empty",)
    with pytest.raises(CorpusError, match=r"a.md: found empty, expected a document with text; repair"):
        updates.report(strict=True)


def test_a_document_of_which_a_part_is_left_out_is_refused_by_strict(updates: Updates) -> None:
    updates.write("a.md", f"---\na: [\n---\n\n{WORDS}")
    assert updates.update() == ["a.md"]
    assert updates.update() == []
    assert updates.report().incomplete[0].startswith("a.md: front matter left out")
    with pytest.raises(CorpusError, match=r"a.md: found front matter left out"):
        updates.report(strict=True)


def test_a_page_that_is_published_later_is_read_again_on_another_day(updates: Updates) -> None:
    updates.write("a.md", f"---\npublishDate: 2026-01-03\n---\n{WORDS}")
    updates.write("guide/b.md", f"---\ndraft: true\n---\n{WORDS}")
    assert updates.update() == ["a.md", "guide/b.md"]
    assert updates.update() == []
    assert updates.update(today=date(2026, 1, 2)) == ["a.md"]
    assert updates.update(today=date(2026, 1, 2)) == []
    assert updates.update(today=date(2026, 1, 3)) == ["a.md"]
    assert updates.update(today=date(2026, 1, 4)) == []


def test_a_copy_of_a_page_is_read_when_the_page_goes_and_left_out_when_it_comes(updates: Updates) -> None:
    copy = f"<link rel=canonical href=https://x.org/next/a>{WORDS}"
    updates.write("1.0/a.html", copy)
    assert updates.update() == ["1.0/a.html"]
    original = updates.write("next/a.html", WORDS)
    assert updates.update() == ["next/a.html"]
    assert "1.0/a.html" not in updates.paths()
    assert updates.update() == []
    original.unlink()
    assert updates.update() == ["1.0/a.html"]
    assert updates.update() == []


def test_one_document_is_updated_too(updates: Updates, tmp_path: Path) -> None:
    updates.folder /= "a.md"
    updates.update()
    assert list(updates.records) == ["a.md"]
    assert updates.update() == []


def test_a_relative_path_finds_the_same_files_from_another_folder(
    updates: Updates, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates.write("site/docusaurus.config.js", "")
    updates.write("site/p.mdx", "import P from '@site/_p.mdx'\n\nA\n\n<P />\n")
    updates.write("site/_p.mdx", "One")
    updates.write("1.0/a.html", WORDS)
    updates.write("versions.json", json.dumps([{"version": "1.0"}]))
    monkeypatch.chdir(updates.folder)
    whole, updates.folder = updates.folder, Path()
    assert updates.update() == ["1.0/a.html", "site/_p.mdx", "site/p.mdx"]
    monkeypatch.chdir(whole.parent)
    updates.folder = Path("docs")
    assert updates.update() == []


def test_a_document_is_read_when_its_partial_becomes_a_link_to_itself(updates: Updates) -> None:
    updates.write("p.mdx", "import P from './_p.mdx'\n\nA\n\n<P />\n")
    partial = updates.write("_p.mdx", "One")
    updates.update()
    partial.unlink()
    partial.symlink_to("_p.mdx")
    updates.report()
    assert updates.read == ["p.mdx"]


def test_records_are_the_same_after_they_were_written(updates: Updates) -> None:
    state = FileState(size=2**40, modified=-1, changed=2**62, inode=2**63)
    whole = FileRecord(1, state, {"place /a": "/b"}, 2**62, "d", 3, "p", "n", "u", "2026-01-01", "c", {"version": "1"})
    name = os.fsdecode(b"caf\xe9.md")
    found = {name: whole, "b.md": replace(whole, rows=2), "a.md": FileRecord()}
    assert list(read_records(write_records(found)).items()) == list(found.items())


def test_files_whose_names_look_the_same_are_two_documents(updates: Updates) -> None:
    updates.write("caf\u00e9.md", "composed")
    updates.write("cafe\u0301.md", "decomposed")
    assert len(updates.update()) == 2
    updates.write("cafe\u0301.md", "decomposed and edited")
    assert updates.update() == ["cafe\u0301.md"]
    assert {"composed", "decomposed and edited"} < set(updates.texts())


def test_runs_that_follow_each_other_are_one() -> None:
    row = PassageRow("a", "b", "{}")
    rows: list[PassageRow | OlderRows] = [
        OlderRows(0, 2),
        OlderRows(2, 2),
        OlderRows(2, 3),
        row,
        OlderRows(3, 4),
        OlderRows(5, 6),
        OlderRows(9, 9),
        row,
    ]
    assert list(joined_runs(rows)) == [OlderRows(0, 3), row, OlderRows(3, 4), OlderRows(5, 6), row]
    assert list(joined_runs([row, OlderRows(7, 8)])) == [row, OlderRows(7, 8)]


def test_the_key_of_reading_changes_with_what_changes_the_passages(
    updates: Updates, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(reading: Reading | None = None) -> str:
        return key_of_readings([(updates.folder, reading or updates.reading())])

    same = updates.reading(
        today=date(2027, 1, 1), exclude=["x"], include=["y"], ignore=False, follow_symlinks=True, strict=True
    )
    assert key(same) == key()
    plain = updates.reading()
    others = [
        *(key(updates.reading(**{name: value})) for name, value in (("base_url", "https://x.org"), ("drafts", True))),
        *(key(replace(plain, splitter=make_splitter(*sizes))) for sizes in ((41,), (40, 1), (40, 0, 501))),
        key(updates.reading(anchors="mkdocs")),
    ]
    other = copy(plain.splitter)
    other.tokenizer_sha256 = "another tokenizer"
    others.append(key(replace(plain, splitter=other)))
    updates.write("docusaurus.config.js", "")
    others.append(key())
    for name, value in (("READERS_VERSION", 0), ("_versions", dict), ("version_info", (3, 99))):
        with monkeypatch.context() as patch:
            patch.setattr(recipe, name, value)
            others.append(key())
    (updates.folder / "docusaurus.config.js").unlink()
    updates.write("mkdocs.yml", "")
    assert key() == others[2 + 3]  # as with anchors="mkdocs"
    (updates.folder / "mkdocs.yml").unlink()
    assert len({key(), *others}) == 1 + len(others)
    recipe._versions.cache_clear()
    packages = json.loads(key())[0]["packages"]
    assert {name: packages[name] for name in ("tokenizers", "PyYAML")} == {
        name: version(name) for name in ("tokenizers", "PyYAML")
    }


def test_a_look_has_its_answer(tmp_path: Path) -> None:
    looks: Looks = {}
    (tmp_path / "docs").mkdir()
    assert site_around(tmp_path / "docs", looks) is None
    assert read_beside(tmp_path / "a", looks) is None
    assert looks == {f"site {tmp_path}/docs": "", f"content {tmp_path}/a": ""}
    (tmp_path / "docusaurus.config.ts").touch()
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to("a")
    assert site_around(tmp_path / "docs", looks) == tmp_path
    assert read_beside(tmp_path / "a", looks) == b"content"
    assert place_of(tmp_path / "b", looks) == tmp_path / "a"
    assert looks == {
        f"site {tmp_path}/docs": str(tmp_path),
        f"content {tmp_path}/a": digest_of(b"content"),
        f"place {tmp_path}/b": f"{tmp_path}/a",
    }
    assert digest_of(b"content") == digest_file(str(tmp_path / "a"))


NAMES = [
    *("a.md", "b.md", "guide/c.mdx", "guide/_p.mdx", "_q.mdx", "guide/index.md", "1.0/d.html", "next/d.html"),
    *("e.txt", "versions.json"),
]
CONTENTS = [
    *("", "one", "two", "# Two\n\ntwo", "---\ndraft: true\n---\none", "---\npublishDate: 2026-01-02\n---\ntwo"),
    "import P from './_p.mdx'\nimport Q from '../_q.mdx'\n\n<P />\n\nthree\n\n<Q />\n",
    "<link rel=canonical href=https://x.org/next/d><p>four</p>",
    '[{"version": "1.0"}]',
]


def test_an_update_equals_a_fresh_index_after_each_of_many_changes(updates: Updates) -> None:
    choose = random.Random(65)
    read = documents = 0
    for day in sorted([1, 2, 3] * 12):
        path = updates.write(choose.choice(NAMES), choose.choice(CONTENTS))
        match choose.choice(["write", "touch", "rename", "remove", "age"]):
            case "touch":
                os.utime(path, ns=(0, choose.randint(0, 2)))
            case "rename":
                path.rename(path.with_name(choose.choice(["f.md", "g.html", "_p.mdx"])))
            case "remove":
                path.unlink()
            case "age":
                updates.age()
        read += len(updates.update(today=date(2026, 1, day)))
        documents += len(updates.records)
    assert read < documents / 2
