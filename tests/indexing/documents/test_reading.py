"""A folder of documents on the command line: what is in the bundle, what is skipped, and what an update embeds."""

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semsearch import index
from semsearch.engine.bundle import PASSAGES, read_manifest
from semsearch.engine.passages import Passage, Passages
from semsearch.indexing import processes as subprocess_call
from semsearch.indexing.bundles import take_model, write_model
from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.documents import folder as document_folder
from semsearch.indexing.documents import reading as document_reading
from semsearch.indexing.documents.document import Document, UnreadableError
from semsearch.indexing.documents.folder import Documents
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import READERS, DocumentOptions, ReadDocument, Reading, read_document
from semsearch.indexing.documents.records import FileRecord
from semsearch.indexing.file_choice import FORMATS
from semsearch.indexing.models import placing
from semsearch.indexing.models.cache import models_folder
from semsearch.indexing.models.source import RECIPE
from semsearch.indexing.options import gather, new_options
from semsearch.indexing.processes import KilledError, Limits
from semsearch.indexing.texts import write_corpus
from tests.command_line import Run, contents, error_line, run, summary, write_csv
from tests.indexing.documents.files import paragraph, write_docx, write_pdf

WORDS = "one two three four five six seven eight nine ten"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One document of each format, and what is not one."""
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    front = "tags: [x]\npath: mine\nurl: mine"  # path and url stay those of the passage
    (folder / "guide" / "a.md").write_text(f"---\n{front}\n---\n# A\n\nHello {WORDS}\n\n## Zebra\n\n{WORDS} {WORDS}\n")
    (folder / "b.html").write_text(f"<h1 id=b>B</h1><p>{WORDS}</p>")
    (folder / "c.txt").write_text(WORDS)
    write_pdf(folder / "d.pdf", [[WORDS], [f"second {WORDS}"]])
    write_docx(folder / "e.docx", paragraph("E", "Heading1") + paragraph(WORDS))
    (folder / "picture.png").write_bytes(b"x")
    (folder / "table.csv").write_text("text\nx\n")
    return folder


def export(folder: Path, out: Path, *options: object) -> Run:
    return run("index", folder, "--out", out, "--passage-tokens", 15, "--replace", "--verbose", *options)


def embedded(done: Run) -> str:
    return summary(done, "embedded").partition(",")[0]


def open_passages(bundle: Path) -> list[Passage]:
    passages = Passages(bundle / PASSAGES)
    return [passages[row] for row in range(len(passages))]


@pytest.mark.parametrize("name", ["main.go", "sub/main.go", ".hidden.md", None])
def test_a_folder_without_a_text_is_refused_with_what_is_read(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    if name is not None:
        (tmp_path / "docs" / name).write_text("package main")
    line = error_line(run("index", tmp_path / "docs", "--out", tmp_path / "bundle"))
    found = "a folder without files"
    if name is not None:
        found = f"only other files, such as {name}"
    if name == ".hidden.md":
        found = "a folder without files; 1 skipped: the name begins with a dot, such as .hidden.md"
    assert f"docs: found {found}, expected documents (.md, .markdown, .mdx, .rst, " in line
    assert ", .docx, .txt) or tables (.csv, .tsv, " in line
    assert line.endswith("), or .parquet), in it or in a folder below it; check the path")
    assert all(suffix in line for suffix in FORMATS)


def test_a_file_that_is_neither_a_document_nor_a_table_is_refused_with_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main")
    line = error_line(run("index", tmp_path / "main.go", "--out", tmp_path / "bundle"))
    assert "main.go: found the suffix '.go', expected documents (.md, " in line
    assert ") or tables (.csv, " in line


def test_each_format_becomes_passages(folder: Path, bundle_copy: Path) -> None:
    done = export(folder, bundle_copy, "--base-url", "https://x.org/docs", "--anchors", "mkdocs")
    assert (done.code, done.err) == (0, "")
    assert summary(done, "documents") == "1 DOCX, 1 HTML, 1 Markdown, 1 PDF, 1 plain text; 8 passages"
    assert summary(done, "files") == (
        "5 read; 1 skipped: the suffix '.csv', such as table.csv; 1 skipped: the suffix '.png', such as picture.png"
    )
    passages = open_passages(bundle_copy)
    assert [each.id for each in passages] == [
        *("b.html#b:1", "c.txt:1", "d.pdf#page=1:1", "d.pdf#page=2:1", "e.docx:1", "guide/a.md#a:1"),
        "guide/a.md#zebra:1",
        "guide/a.md#zebra:2",
    ]
    assert passages[3].metadata == {
        "path": "d.pdf", "url": "https://x.org/docs/d.pdf#page=2", "title": "d", "headings": [], "page": 2,
        "start": 48, "end": 103, "passage": 1, "kind": "page",
    }  # fmt: skip
    assert passages[6].metadata | {"start": 0, "end": 0} == {
        "path": "guide/a.md", "url": "https://x.org/docs/guide/a/#zebra", "title": "A", "headings": ["A", "Zebra"],
        "start": 0, "end": 0, "passage": 1, "kind": "page", "tags": ["x"],
    }  # fmt: skip
    assert read_manifest(bundle_copy).corpus.columns["headings"] == "list"


def test_an_update_of_a_folder_embeds_the_edited_page_alone(folder: Path, bundle_copy: Path) -> None:
    assert export(folder, bundle_copy).code == 0
    assert embedded(export(folder, bundle_copy, "--update", bundle_copy)) == "0 texts"

    (folder / "c.txt").write_text(f"{WORDS} edited")
    (folder / "b.html").unlink()
    assert embedded(export(folder, bundle_copy, "--update", bundle_copy)) == "1 texts"
    assert not any(each.id.startswith("b.html") for each in open_passages(bundle_copy))


def test_a_built_site_is_read_without_its_search_and_what_is_left_out(folder: Path, bundle_copy: Path) -> None:
    for name in ("index", "404", "search/index", "drafts/new/a", "find/index"):
        (folder / f"{name}.html").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.html").write_text(f"<link rel=canonical href=https://x.org/{name}><h1>{name}</h1>{WORDS}")
    (folder / "main.js.LICENSE.txt").write_text(WORDS)
    (folder / "thanks.html").write_text(f"<meta name=robots content='noindex, nofollow'>{WORDS}")
    for name in ("code", "data"):
        (folder / "find" / name).mkdir()
    (folder / "find" / "service-worker.js").touch()
    done = export(folder, bundle_copy, "--exclude", "drafts/*", "--exclude", "*.pdf")
    assert summary(done, "files").startswith("5 read; 1 skipped: a site that searches in the browser, such as find; ")
    assert "5 skipped: an excluded path, such as 404.html; " in summary(done, "files")
    assert "1 skipped: a page with noindex, such as thanks.html; " in summary(done, "files")
    assert {each.metadata["path"] for each in open_passages(bundle_copy)} == {
        *("b.html", "c.txt", "e.docx", "guide/a.md", "index.html")
    }


UNLISTED = {
    "draft": "---\ndraft: true\n---\n",
    "unlisted": "+++\nunlisted = true\n+++\n",
    "published": "---\npublished: false\n---\n",
    "publish": '{\n"publish": false\n}\n',
    "later": "---\npublishDate: 2999-01-01T00:00:00Z\n---\n",
    "robots": "---\nrobots: noindex\n---\n",
}


def test_an_unlisted_page_is_left_out_unless_drafts_are_asked_for(bundle_copy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "listed.md").write_text(f"---\ndraft: false\npublishDate: 2020-01-01\n---\n# A\n\n{WORDS}")
    for name, front in UNLISTED.items():
        (folder / f"{name}.md").write_text(f"{front}# {name}\n\n{WORDS}")
    done = export(folder, bundle_copy)
    assert summary(done, "files").startswith("1 read; ")
    said = " ".join(done.out.split())
    for reason in ("draft: true", "unlisted: true", "published: false", "publish: false", "noindex"):
        assert f"1 skipped: a page with {reason}, such as " in said
    assert "1 skipped: a page with a publishDate in the future, such as later.md" in said
    assert summary(export(folder, bundle_copy, "--drafts"), "files") == "7 read"


def test_documents_that_cannot_be_read_are_listed_or_end_a_strict_export(
    folder: Path, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, anchors: str) -> Document:
        raise IndexError("no such entry\nin a table")

    monkeypatch.setitem(FORMATS, ".htm", "HTML that fails")
    monkeypatch.setitem(READERS, "HTML that fails", fail)
    (folder / "error.htm").write_text(WORDS)
    (folder / "empty.md").write_text("\n")
    (folder / "broken.pdf").write_text("x")
    write_pdf(folder / "scanned.pdf", [[]])
    write_pdf(folder / "locked.pdf", [["x"]], is_encrypted=True)
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    before = contents(bundle_copy)
    line = error_line(export(folder, bundle_copy, "--strict"))
    assert line.startswith(f"error: {folder}/broken.pdf: found broken: ")
    assert line.endswith("expected a document with text; repair or remove it, or leave out --strict")
    assert contents(bundle_copy) == before

    done = export(folder, bundle_copy)
    assert done.code == 0
    listed = [each.removeprefix("not read").strip() for each in done.out.splitlines() if each.startswith("not read")]
    assert [each.partition(":")[0] for each in listed] == [
        *("broken.pdf", "empty.md", "error.htm", "latin.txt", "locked.pdf", "scanned.pdf")
    ]
    assert listed[2] == "error.htm: broken: IndexError: no such entry"
    assert listed[4:] == ["locked.pdf: encrypted", "scanned.pdf: scanned: no page has text"]


def test_one_document_is_a_corpus_and_documents_without_text_are_none(folder: Path, bundle_copy: Path) -> None:
    assert export(folder / "guide" / "a.md", bundle_copy).code == 0
    assert Passages(bundle_copy / PASSAGES).id(0) == "a.md#a:1"
    (folder / "empty.txt").write_text("")
    done = export(folder / "empty.txt", bundle_copy)
    assert error_line(done) == (
        f"error: {folder}/empty.txt: found no text; empty.txt: empty, expected documents with text; check the path"
    )
    (folder / "empty").mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / "empty" / name).touch()
    assert "empty: found no text; a.txt: empty, expected" in error_line(export(folder / "empty", bundle_copy))


def test_a_bundle_is_no_corpus(folder: Path, bundle_copy: Path) -> None:
    done = export(bundle_copy, bundle_copy)
    assert f"{bundle_copy}: found a bundle, expected a folder of texts; name the texts that" in error_line(done)
    shutil.copytree(bundle_copy, folder / "guide" / "bundle")
    assert "1 skipped: a bundle, such as guide/bundle" in export(folder, bundle_copy).out
    assert not any(each.id.startswith("guide/bundle") for each in open_passages(bundle_copy))


def test_long_texts_of_a_table_are_divided(tmp_path: Path, bundle_copy: Path) -> None:
    long = " ".join(f"{WORDS} {n}." for n in range(6))
    table = write_csv(
        tmp_path / "a.csv", [{"id": "x", "text": long, "kind": "k"}, {"id": "y", "text": WORDS, "kind": "k"}]
    )
    done = export(table, bundle_copy, "--split")
    assert summary(done, "split") == "1 texts into several passages"
    passages = open_passages(bundle_copy)
    assert [each.id for each in passages] == [*(f"x:{n}" for n in range(1, 7)), "y"]
    for each in passages[:6]:
        assert long[each.metadata["start"] : each.metadata["end"]] == each.text
        assert (each.metadata["path"], each.metadata["kind"]) == ("x", "k")
    assert passages[6].metadata == {"kind": "k", "path": "y", "start": 0, "end": len(WORDS), "passage": 0}
    write_csv(table, [{"text": WORDS, "path": "p"}])
    assert error_line(export(table, bundle_copy, "--split")).startswith(
        "error: --split: found a column 'path', expected"
    )


def test_one_command_takes_the_model_and_then_the_documents(
    folder: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(placing, "can_convert", lambda: False)  # the named model is found in the cache
    cached = models_folder() / "tests"
    cached.mkdir(parents=True)
    model = take_model(bundle, cached).model
    write_model(cached, replace(model, quantization=RECIPE))
    out = tmp_path / "bundle"
    options = (folder, "--passage-tokens", 15, "--out", out, "--verbose")
    assert run("index", *options, "--model", model.name).code == 0
    before = contents(out)
    done = run("index", *options)
    assert embedded(done) == "0 texts"
    assert contents(out) == before


def test_documents_for_an_index_of_a_table_are_refused(folder: Path, bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "coats.csv").write_text("sku,name\nc-1,A warm coat\n")
    done = run(*("index", tmp_path / "coats.csv", "--text-column", "name", "--out", bundle_copy, "--replace"))
    assert done.code == 0
    done = export(folder, bundle_copy)
    assert done.code == 1
    assert "found documents, and the option text_column or id_column, which the updated index can have" in done.err
    assert export(folder, bundle_copy, "--text-column", "", "--id-column", "").code == 0


def paths_of(bundle: Path) -> list[str]:
    return [str(each.metadata["path"]) for each in open_passages(bundle)]


def test_documents_that_cannot_be_read_keep_their_older_passages_and_others_arrive(
    tmp_path: Path, bundle_copy: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "outside.md").write_text("# Outside\n\nA text\n")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "picture.png").symlink_to("nowhere")
    for name in ("a.md", "broken.md", "emptied.md"):
        (folder / name).write_text(f"# {name}\n\nAn older text\n")

    def update() -> ReadReport:
        return index(folder, bundle_copy, mode="replace", follow_symlinks=True, progress=False).report

    assert update().outdated == ()
    (tmp_path / "outside.md").unlink()
    (folder / "broken.md").write_bytes(b"caf\xe9")
    (folder / "emptied.md").write_bytes(b"")
    (folder / "a.md").write_text("# A\n\nA new text\n")
    for _ in range(2):
        report = update()
        assert report.unreadable == (
            "broken.md: not UTF-8: unexpected end of data at byte 3; its 1 older passages stay",
            "emptied.md: empty",
            f"link.md: a link to {tmp_path}/outside.md: No such file or directory; its 1 older passages stay",
        )
        assert report.outdated == (report.unreadable[0], report.unreadable[2])
        assert report.refused == ("link.md",)
        assert paths_of(bundle_copy) == ["a.md", "broken.md", "link.md"]
        texts = [each.text for each in open_passages(bundle_copy)]
        assert ["new" in text for text in texts] == [True, False, False]
    with pytest.raises(CorpusError, match=r"broken.md: found not UTF-8"):
        index(folder, bundle_copy, mode="replace", follow_symlinks=True, strict=True, progress=False)


def test_a_document_that_is_written_while_it_is_read_keeps_its_older_passages_and_nothing_else_out(
    folder: Path, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(**options: Any) -> ReadReport:
        return index(folder, bundle_copy, mode="replace", progress=False, **options).report

    update()
    before, read = paths_of(bundle_copy), READERS["plain text"]

    def read_and_write(path: Path, anchors: str) -> Document:
        document = read(path, anchors)
        path.write_text(f"{path.read_text()} more")
        return document

    monkeypatch.setitem(READERS, "plain text", read_and_write)
    (folder / "c.txt").write_text("other words")
    (folder / "b.html").unlink()
    report = update()
    assert report.outdated == ("c.txt: it was written while it was read; its 1 older passages stay",)
    assert report.refused == ("c.txt",)
    assert paths_of(bundle_copy) == [path for path in before if path != "b.html"]
    with pytest.raises(CorpusError, match=r"c.txt: found it was written while it was read"):
        update(strict=True)


def test_documents_of_a_folder_that_cannot_be_read_keep_their_older_passages(
    folder: Path, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(folder, bundle_copy, mode="replace", progress=False)
    before, scandir = paths_of(bundle_copy), os.scandir

    def refusing(path: Any) -> Any:
        if path == str(folder / "guide"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    report = index(folder, bundle_copy, mode="replace", progress=False).report
    assert report.outdated == ("guide: Permission denied; its 3 older passages stay",)
    assert paths_of(bundle_copy) == before


def test_a_document_keeps_no_passages_of_another_folder(tmp_path: Path, bundle_copy: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# A\n\nA text of {name}\n")
    (tmp_path / "one" / "b.md").write_text("# B\n\nA text\n")
    (tmp_path / "other" / "b.md").symlink_to("nowhere")
    index(tmp_path / "one", bundle_copy, mode="replace", progress=False)
    index(tmp_path / "other", bundle_copy, mode="replace", progress=False)
    assert paths_of(bundle_copy) == ["a.md"]


def test_an_unread_document_has_its_reason_and_the_passages_of_the_older_index(
    tmp_path: Path, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    results: list[ReadDocument | Exception] = [
        KilledError(-signal.SIGXCPU),
        KilledError(-signal.SIGSEGV),
        MemoryError(),
        OSError(errno.EIO, "Input/output error"),
        UnreadableError("encrypted"),
        ReadDocument([PassageRow("words", "f.docx:1", "{}")], FileRecord(rows=1, running_lines=2, problem="a part")),
    ]
    for name, _ in zip("abcdef", results, strict=True):
        (folder / f"{name}.docx").write_bytes(b"x" * 300_000)
    monkeypatch.setattr(document_folder, "in_workers", lambda *arguments: (each for each in results))
    options = gather(DocumentOptions, new_options(index, {}))
    _, report = write_corpus(Documents(folder, Reading(make_splitter(40), options)), tmp_path / PASSAGES)
    assert report.unreadable == (
        "a.docx: it takes more than 13 s of processor time",
        f"b.docx: its reader crashed (exit code {-signal.SIGSEGV}): it is broken, or takes more than 286 MB of memory",
        "c.docx: it takes more than 286 MB of memory",
        "d.docx: Input/output error",
        "e.docx: encrypted",
    )
    assert (report.outdated, report.refused) == (report.unreadable[3:4], ("d.docx",))
    assert (report.incomplete, report.running_lines, report.documents) == (("f.docx: a part",), 2, {"DOCX": 1})
    results[:] = [ValueError("a fault of this program")]
    with pytest.raises(ValueError, match="a fault of this program"):
        list(Documents(folder, Reading(make_splitter(40), options)).passages())


def test_a_passage_states_the_table_that_it_continues_and_where_its_file_is_shown(
    tmp_path: Path, make_splitter: Callable[..., Splitter]
) -> None:
    (tmp_path / "docusaurus.config.js").touch()
    (tmp_path / "a.md").write_text("| a | b |\n|---|---|\n" + "| one two three | four five six |\n" * 3)
    for base in ("https://github.com/o/r/blob/main", "file:///docs"):
        options = gather(DocumentOptions, new_options(index, {"base_url": base, "anchors": "docusaurus"}))
        rows = read_document(tmp_path, Reading(make_splitter(20), options), tmp_path / "a.md").rows
        stated = [json.loads(row.metadata) for row in rows]
        assert [each.get("table") for each in stated] == [None, *["a | b"] * (len(rows) - 1)]
        assert {each["url"] for each in stated} == {f"{base}/a.md"}
        assert len(rows) > 1


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        ([], {}, "a.md#über-uns"),
        (["mkdocs.yml"], {}, "a.md#uber-uns"),
        (["mkdocs.yaml"], {}, "a.md#uber-uns"),
        (["docs/mkdocs.yml"], {}, "a.md#uber-uns"),
        (["docs/guide/mkdocs.yml"], {}, "a.md#über-uns"),  # below the folder
        (["mkdocs.yml"], {"anchors": "github"}, "a.md#über-uns"),
        (["mkdocs.yml"], {"base_url": "https://x.org"}, "a.md#uber-uns"),
        (["mkdocs.yml"], {"base_url": "https://github.com/o/r/blob/main"}, "a.md#über-uns"),  # GitHub shows the file
        (["mkdocs.yml", "docs/docusaurus.config.js"], {}, "a.md#über-uns"),
        (["docusaurus.config.js", "docs/mkdocs.yml"], {}, "a.md#uber-uns"),  # the nearest one
        (["docusaurus.config.js", "mkdocs.yml"], {}, "a.md#über-uns"),
    ],
    ids=lambda value: "",
)
def test_anchors_are_those_of_the_site_around_the_folder(
    tmp_path: Path, make_splitter: Callable[..., Splitter], files: list[str], options: dict[str, str], expected: str
) -> None:
    for name in ("docs/a.md", *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# A\n\n## Über uns\n\n{WORDS}\n" if name.endswith(".md") else "")
    reading = Reading(make_splitter(40), gather(DocumentOptions, new_options(index, options)))
    found = [row for row in Documents(tmp_path / "docs", reading).passages() if isinstance(row, PassageRow)]
    assert found[-1].id == f"{expected}:1"


def test_a_larger_file_can_take_more_time_and_memory(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    reading = Reading(make_splitter(40), gather(DocumentOptions, new_options(index, {})), seconds=1, memory=1_000)
    for name in ("a.html", "A.DOCX"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, 1_299_999)
    assert reading.limits(tmp_path / "a.html") == Limits(1 + 12, 1_000 + 15 * 1_299_999)
    assert reading.limits(tmp_path / "A.DOCX") == Limits(1 + 12, 1_000 + 100 * 1_299_999)
    assert reading.limits(tmp_path / "missing.docx") == Limits(1, 1_000)


def test_a_file_that_is_too_large_is_not_read_unless_it_is_a_pdf(
    tmp_path: Path, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_reading, "LARGEST_FILE", 1_000)
    reading = Reading(make_splitter(40), gather(DocumentOptions, new_options(index, {})))
    path = tmp_path / "a.txt"
    path.write_text("x" * 1_000)
    assert len(read_document(tmp_path, reading, path).rows) == 1
    path.write_text("x" * 1_001)
    with pytest.raises(UnreadableError, match=r"^1,001 bytes, more than 1,000: divide it$"):
        read_document(tmp_path, reading, path)
    pdf = write_pdf(tmp_path / "a.pdf", [[WORDS], [WORDS]])
    assert pdf.stat().st_size > 1_000
    assert read_document(tmp_path, reading, pdf).record.rows == 2


LAST_WORDS = "some words of a text"

Read = Callable[..., ReadReport]


@pytest.fixture
def read(tmp_path: Path, make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return what reads the folder of the test in processes of their own, with these limits."""
    monkeypatch.setattr(document_folder, "in_workers", subprocess_call.in_workers)
    (tmp_path / "z.md").write_text(LAST_WORDS)

    def read(seconds: int = 60, memory: int = 10**9) -> ReadReport:
        options = gather(DocumentOptions, new_options(index, {}))
        limited = Reading(make_splitter(40), options, seconds=seconds, memory=memory)
        corpus, report = write_corpus(Documents(tmp_path, limited), tmp_path / PASSAGES)
        assert LAST_WORDS in corpus.texts  # the last document was read
        return report

    return read


@pytest.mark.slow  # tests/indexing/test_processes.py has a worker that takes too long
def test_a_document_that_takes_too_long_is_skipped(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.html").write_text("<div>" * 150_000 + LAST_WORDS)
    assert read(seconds=1).unreadable == ("a.html: it takes more than 8 s of processor time",)


@pytest.mark.slow  # test_processes.py has a worker that takes too much
def test_documents_that_take_too_much_memory_are_skipped(tmp_path: Path, read: Read) -> None:
    write_pdf(tmp_path / "a.pdf", [["a" * 100] * 60_000], is_compressed=True)
    (tmp_path / "b.txt").write_text("a\n\n" * 1_000_000)
    pdf, text = read(memory=100_000_000).unreadable
    assert pdf.startswith("a.pdf: its reader crashed (exit code -")
    assert pdf.endswith("): it is broken, or takes more than 100 MB of memory")
    assert text == "b.txt: it takes more than 145 MB of memory"
