"""Files named `.txt` that are reStructuredText: Sphinx's configuration says so, or they do."""

from pathlib import Path

import pytest

from semsearch.indexing.documents.addresses import page_address
from semsearch.indexing.documents.sphinx_suffix import has_marks, suffix_is_rst
from tests.indexing.documents.test_records import Updates, updates

TITLE = "Ferries\n=======\n\n"


@pytest.mark.parametrize(
    ("stated", "is_rst"),
    [
        ("source_suffix = '.txt'", True),
        ("source_suffix = ['.rst', '.txt']", True),
        ("source_suffix = ('.txt',)", True),
        ("source_suffix = {'.txt': 'restructuredtext', '.md': 'markdown'}", True),
        ("import os\nproject = source_suffix = '.txt'", True),
        ("source_suffix = '.rst'\nsource_suffix = '.txt'", True),
        ("source_suffix = '.txt'\nsource_suffix = '.rst'", False),
        ("source_suffix = '.rst'", False),
        ("source_suffix = ['.rst']", False),
        ("source_suffix = {'.txt': 'markdown'}", False),
        ("source_suffix = {'.txt': None}", False),
        ("source_suffix = 7", False),
        ("source_suffix = '.tx' + 't'", False),
        ("other = '.txt'", False),
        ("if True:\n    source_suffix = '.txt'", False),
        ("source_suffix = '.txt'\n(", False),
        ("", False),
    ],
)
def test_the_configuration_says_in_literals_whether_txt_is_restructuredtext(
    stated: str, is_rst: bool, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert not suffix_is_rst(tmp_path / "a" / "b")
    (tmp_path / "conf.py").write_text(stated)
    assert [suffix_is_rst(folder) for folder in (tmp_path, tmp_path / "a" / "b")] == [is_rst, is_rst]
    (tmp_path / "a" / "conf.py").write_text("source_suffix = '.md'")
    assert not suffix_is_rst(tmp_path / "a" / "b")


def test_the_configuration_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nsource_suffix = ['.txt']")
    assert suffix_is_rst(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (f"{TITLE}.. note:: The last one", True),
        (f"{TITLE}.. note::", True),
        (f"{TITLE}.. _ferries:", True),
        (f"{TITLE}See :doc:`the harbour`.", True),
        (f"{TITLE}See :py:func:`sail`.", True),
        (f"{TITLE}.. note:: The last one".replace("\n", "\r\n"), True),
        ("Ferry\n=====\n\n.. note:: One", True),
        ("Ferry\n====\n\n.. note:: One", False),
        ("Ferry\n=-==-\n\n.. note:: One", False),
        (TITLE, False),
        (".. note:: The last one", False),
        (f"{TITLE}.. a comment", False),
        (f"{TITLE}12:30 and `this`", False),
        (f"{TITLE}a note:: and .. note:: inside", False),
        ("", False),
    ],
)
def test_a_title_with_a_directive_a_target_or_a_role_is_restructuredtext(text: str, has: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    assert has_marks(path) == has


def test_such_a_file_has_sections_is_counted_as_what_it_is_and_is_read_again_when_the_configuration_changes(
    updates: Updates,
) -> None:
    updates.write("plain.txt", f"{TITLE}Two of them.\n\nHarbours\n--------\n\nNone.")
    updates.write("marked.txt", f"{TITLE}.. _ferries:\n\nTwo of them.")
    assert updates.report().documents == {"Markdown": 3, "plain text": 1, "reStructuredText": 1}
    assert "Two of them." in updates.texts()
    updates.write("conf.py", "source_suffix = {'.txt': 'restructuredtext'}")
    assert sorted(updates.update()) == ["marked.txt", "plain.txt"]
    assert updates.report().documents == {"Markdown": 3, "reStructuredText": 2}
    assert updates.paths().count("plain.txt") == 2  # its sections
    (updates.folder / "conf.py").unlink()
    assert sorted(updates.update()) == ["marked.txt", "plain.txt"]
    assert updates.report().documents == {"Markdown": 3, "plain text": 1, "reStructuredText": 1}


@pytest.mark.parametrize(
    ("base_url", "style", "address"),
    [
        ("", "github", "ref/a.txt"),
        ("", "sphinx", "ref/a.html"),
        ("https://x.org/", "github", "https://x.org/ref/a.html"),
        ("https://x.org/blob/main", "github", "https://x.org/blob/main/ref/a.txt"),
    ],
    ids=["files of a folder", "Sphinx", "a site", "files of a repository"],
)
def test_the_address_is_that_of_a_page_of_sphinx(base_url: str, style: str, address: str) -> None:
    assert page_address("ref/a.txt", base_url, style, is_rst=True) == address
    assert page_address("ref/a.txt", base_url, style).endswith("ref/a.txt")


__all__ = ["updates"]
