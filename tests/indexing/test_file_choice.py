"""The files that an index is made of, which `--watch` and the commands look at."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from semsearch.indexing.file_choice import files_of_index


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text")
    return folder


def chosen(folder: Path, options: Mapping[str, Any] | None = None) -> set[str]:
    """Return the files that are there, relative to the folder above the one of the test."""
    files = map(Path, files_of_index(folder, options or {}))
    return {str(file.relative_to(folder.parent)) for file in files if file.is_file()}


def in_docs(names: Iterable[str]) -> set[str]:
    return {f"docs/{name}" for name in names}


def test_files_beside_documents_do_not_count(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", "a.md", "guide/b.PDF", "data.json", "app.log", "guide/c.csv", ".hidden.md")
    assert chosen(docs) == in_docs(["a.md", "guide/b.PDF"])


def test_of_a_folder_without_a_document_the_tables_count(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", "data.json", "guide/c.CSV.gz", "app.log", "app.gz")
    assert chosen(docs) == in_docs(["data.json", "guide/c.CSV.gz"])
    (docs / "excluded.md").write_text("text")
    assert chosen(docs) == in_docs(["excluded.md"])
    assert chosen(docs, {"include": ["c.CSV.gz"]}) == in_docs(["excluded.md", "guide/c.CSV.gz"])


@pytest.mark.parametrize(
    ("options", "added", "removed"),
    [
        ({}, set(), set()),
        ({"exclude": ["old/*", "caf\u00e9.md"]}, set(), {"old/c.md", "cafe\u0301.md"}),
        ({"exclude": ["docs/*", "s/*", "ld/*"]}, set(), set()),
        ({"include": ["f.py", "*.csv"]}, {"f.py", "old/g.csv"}, set()),
        ({"include": ["old/*", "*"], "exclude": ["*.csv", "c.md"]}, {"f.py", "caf\u00e9.el"}, {"old/c.md"}),
        ({"include": ["CAF\u00c9.el", "cafe\u0301.el", "*.PY"]}, {"caf\u00e9.el"}, set()),
        ({"include": ["y", "py", ".py", "ld/g.csv", "ignored.py"]}, set(), set()),
        ({"ignore": False}, {"ignored.md"}, set()),
        ({"ignore": False, "include": ["ignored.py"]}, {"ignored.md", "ignored.py"}, set()),
        ({"drafts": True}, {"_drafts/d.md"}, set()),
        ({"follow_symlinks": True}, {"linked/e.md"}, set()),
    ],
)
def test_the_options_of_the_index_decide(
    options: dict[str, Any], added: set[str], removed: set[str], tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", "a.md", "old/c.md", "cafe\u0301.md", "ignored.md", "_drafts/d.md")
    write(docs, "f.py", "old/g.csv", "caf\u00e9.el", "ignored.py", ".hidden.py")
    write(tmp_path, "private/e.md")
    (docs / "linked").symlink_to("../private")
    (docs / ".ignore").write_text("ignored.*")
    assert chosen(docs, options) == in_docs({"a.md", "old/c.md", "cafe\u0301.md"} - removed | added)


def test_pages_of_a_built_site_that_are_no_content_do_not_count(tmp_path: Path) -> None:
    site = write(tmp_path / "docs", "index.html", "search.html", "js/a.js.LICENSE.txt", "genindex/a.html")
    assert chosen(site) == in_docs(["index.html", "genindex/a.html"])


def test_what_decides_the_versions_of_pages_counts(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", "a.md", "versions.json", "package.json")
    assert chosen(docs) == in_docs(["a.md", "versions.json"])
    assert chosen(docs / "a.md") == {"a.md", "versions.json"}
    write(tmp_path, "docusaurus.config.ts", "versions.json", "package.json")
    of_site = {str(tmp_path / name) for name in ("docusaurus.config.ts", "versions.json")}
    assert of_site < set(files_of_index(docs, {}))


def test_the_configurations_of_sphinx_count(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", "a.txt", "b/c.txt", "b/conf.py", "conf.pyc")
    assert chosen(docs) == in_docs(["a.txt", "b/c.txt", "b/conf.py"])
    write(tmp_path, "conf.py")
    assert {str(docs / "a.txt"), str(tmp_path / "conf.py"), str(docs / "b/conf.py")} < set(files_of_index(docs, {}))
    write(docs, "conf.py")
    assert chosen(docs) == in_docs(["a.txt", "b/c.txt", "b/conf.py", "conf.py"])
    assert chosen(docs / "a.txt") == {"a.txt", "conf.py"}


def test_the_configuration_of_mkdocs_counts(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", "a.md", "mkdocs.yml.bak")
    write(tmp_path, "mkdocs.yml")
    assert {str(docs / "a.md"), str(tmp_path / "mkdocs.yml")} < set(files_of_index(docs, {}))
    write(docs, "mkdocs.yaml")
    assert chosen(docs) == in_docs(["a.md", "mkdocs.yaml"])
    assert chosen(docs / "a.md") == {"a.md", "mkdocs.yaml"}


def test_partials_count_where_a_document_can_import_them(tmp_path: Path) -> None:
    partials = ("_static/part.mdx", "_includes/deep/part.md")
    docs = write(tmp_path / "docs", "a.md", *partials, "_includes/picture.svg")
    assert chosen(docs) == in_docs(["a.md"])
    write(docs, "b.mdx")
    assert chosen(docs) == in_docs(["a.md", "b.mdx", *partials])
    (docs / "b.mdx").unlink()
    write(docs, "docusaurus.config.js", "_part.md")
    assert chosen(docs) == in_docs(["a.md", "docusaurus.config.js", "_part.md", *partials])
