"""A folder of documents on the command line: what is in the bundle, what is skipped, and what an update embeds."""

import shutil
from pathlib import Path

import pytest

from semsearch.engine.bundle import PASSAGES, read_manifest
from semsearch.engine.passages import Passage, Passages
from semsearch.indexing.documents.document import Document
from semsearch.indexing.documents.reading import FORMATS
from tests.command_line import Run, contents, error_line, run, summary, write_csv
from tests.export_fixtures import TINY_BERT
from tests.indexing.documents.files import paragraph, write_docx, write_pdf

WORDS = "one two three four five six seven eight nine ten"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One document of each format, and what is not one."""
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "a.md").write_text(
        f"---\ntags: [x]\n---\n# A\n\nHello {WORDS}\n\n## Zebra\n\n{WORDS} {WORDS}\n"
    )
    (folder / "b.html").write_text(f"<h1 id=b>B</h1><p>{WORDS}</p>")
    (folder / "c.txt").write_text(WORDS)
    write_pdf(folder / "d.pdf", [[WORDS], [f"second {WORDS}"]])
    write_docx(folder / "e.docx", paragraph("E", "Heading1") + paragraph(WORDS))
    (folder / "picture.png").write_bytes(b"x")
    (folder / "table.csv").write_text("text\nx\n")
    return folder


@pytest.fixture
def broken(folder: Path) -> Path:
    """The folder with documents that cannot be read."""
    (folder / "empty.md").write_text("\n")
    (folder / "broken.pdf").write_text("x")
    write_pdf(folder / "scanned.pdf", [[]])
    write_pdf(folder / "locked.pdf", [["x"]], is_encrypted=True)
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    return folder


def export(folder: Path, out: Path, *options: object) -> Run:
    return run("index", folder, "--out", out, "--passage-tokens", 15, "--replace", "--verbose", *options)


def embedded(done: Run) -> str:
    return summary(done, "embedded").partition(",")[0]


def open_passages(bundle: Path) -> list[Passage]:
    passages = Passages(bundle / PASSAGES)
    return [passages[row] for row in range(len(passages))]


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
        "start": 48, "end": 103, "passage": 1,
    }  # fmt: skip
    assert passages[6].metadata | {"start": 0, "end": 0} == {
        "path": "guide/a.md", "url": "https://x.org/docs/guide/a/#zebra", "title": "A", "headings": ["A", "Zebra"],
        "start": 0, "end": 0, "passage": 1, "tags": ["x"],
    }  # fmt: skip
    assert read_manifest(bundle_copy).index.columns["headings"] == "list"  # type: ignore[union-attr]


def test_an_unchanged_folder_makes_the_same_bytes_and_an_update_embeds_one_edited_page(
    folder: Path, bundle_copy: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(bundle_copy, tmp_path / "other"))
    assert export(folder, bundle_copy).code == export(folder, other).code == 0
    assert contents(bundle_copy) == contents(other)
    assert embedded(export(folder, bundle_copy, "--update", bundle_copy)) == "0 texts"

    (folder / "c.txt").write_text(f"{WORDS} edited")
    (folder / "b.html").unlink()
    done = export(folder, bundle_copy, "--update", bundle_copy)
    assert embedded(done) == "1 texts"
    assert export(folder, other).code == 0
    assert contents(bundle_copy) == contents(other)
    assert not any(each.id.startswith("b.html") for each in open_passages(bundle_copy))


def test_a_built_site_is_read_without_its_own_search_and_what_its_author_leaves_out(
    folder: Path, bundle_copy: Path
) -> None:
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
    (folder / "index.html").write_text(f"{WORDS} edited")
    assert embedded(export(folder, bundle_copy, "--update", bundle_copy)) == "1 texts"


UNLISTED = {
    "draft": "---\ndraft: true\n---\n",
    "unlisted": "+++\nunlisted = true\n+++\n",
    "published": "---\npublished: false\n---\n",
    "publish": '{\n"publish": false\n}\n',
    "later": "---\npublishDate: 2999-01-01T00:00:00Z\n---\n",
    "robots": "---\nrobots: noindex\n---\n",
}


def test_a_page_that_is_not_to_be_found_is_left_out_unless_drafts_are_asked_for(
    bundle_copy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "listed.md").write_text(f"---\ndraft: false\npublishDate: 2020-01-01\n---\n# A\n\n{WORDS}")
    for name, front in UNLISTED.items():
        (folder / f"{name}.md").write_text(f"{front}# {name}\n\n{WORDS}")
    done = export(folder, bundle_copy)
    assert summary(done, "files").startswith("1 read; ")
    for reason in ("draft: true", "unlisted: true", "published: false", "publish: false", "noindex"):
        assert f"1 skipped: a page with {reason}, such as " in " ".join(done.out.split())
    assert "1 skipped: a page with a publishDate in the future, such as later.md" in " ".join(done.out.split())
    assert summary(export(folder, bundle_copy, "--drafts"), "files") == "7 read"


def test_documents_that_cannot_be_read_are_listed(broken: Path, bundle_copy: Path) -> None:
    done = export(broken, bundle_copy)
    assert done.code == 0
    listed = [each.removeprefix("not read").strip() for each in done.out.splitlines() if each.startswith("not read")]
    assert [each.partition(":")[0] for each in listed] == [
        *("broken.pdf", "empty.md", "latin.txt", "locked.pdf", "scanned.pdf")
    ]
    assert listed[3:] == ["locked.pdf: encrypted", "scanned.pdf: scanned: no page has text"]


def test_a_document_whose_parser_fails_is_listed(
    folder: Path, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, anchors: str) -> Document:
        raise IndexError("no such entry\nin a table")

    monkeypatch.setitem(FORMATS, ".txt", ("plain text", fail))
    assert summary(export(folder, bundle_copy), "not read") == "c.txt: broken: IndexError: no such entry"


def test_strict_stops_at_a_document_that_cannot_be_read(broken: Path, bundle_copy: Path) -> None:
    before = contents(bundle_copy)
    done = export(broken, bundle_copy, "--strict")
    assert done.code == 1
    assert error_line(done).startswith(f"error: {broken}/broken.pdf: found broken: ")
    assert error_line(done).endswith("expected a document with text; repair or remove it, or leave --strict out")
    assert contents(bundle_copy) == before


def test_one_document_is_a_corpus_and_documents_without_text_are_none(folder: Path, bundle_copy: Path) -> None:
    assert export(folder / "guide" / "a.md", bundle_copy).code == 0
    assert Passages(bundle_copy / PASSAGES).id(0) == "a.md#a:1"
    (folder / "empty.txt").write_text("")
    done = export(folder / "empty.txt", bundle_copy)
    assert error_line(done) == (
        f"error: {folder}/empty.txt: found no text; empty.txt: empty, expected documents with text; check the path"
    )


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


def test_front_matter_cannot_replace_the_columns_of_each_passage(folder: Path, bundle_copy: Path) -> None:
    (folder / "f.md").write_text(f"---\npath: mine\nurl: mine\n---\n{WORDS}")
    assert export(folder, bundle_copy).code == 0
    (found,) = (each for each in open_passages(bundle_copy) if each.id == "f.md:1")
    assert (found.metadata["path"], found.metadata["url"]) == ("f.md", "f.md")


def test_one_command_exports_the_model_first_and_then_the_documents(
    folder: Path, calibration: Path, tmp_path: Path
) -> None:
    out, options = tmp_path / "bundle", (folder, "--passage-tokens", 15, "--out", tmp_path / "bundle", "--verbose")
    assert run("index", *options, "--model", TINY_BERT, "--calibration", calibration).code == 0
    before = contents(out)
    done = run("index", *options)
    assert embedded(done) == "0 texts"
    assert contents(out) == before


def test_documents_for_an_index_of_a_table_are_refused_in_a_sentence(
    folder: Path, bundle_copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "coats.csv").write_text("sku,name\nc-1,A warm coat\n")
    done = run(*("index", tmp_path / "coats.csv", "--text-column", "name", "--out", bundle_copy, "--replace"))
    assert done.code == 0
    done = export(folder, bundle_copy)
    assert done.code == 1
    assert "found documents, and the option text_column or id_column, which the updated index can have" in done.err
    assert export(folder, bundle_copy, "--text-column", "", "--id-column", "").code == 0
