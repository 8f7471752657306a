"""All of these tests run their commands in this process."""

import shutil
from pathlib import Path

import pytest

from semsearch.commands.places import kept_index
from tests.commands.running import write_story


@pytest.fixture(scope="session", autouse=True)
def _quick(quick_commands: None) -> None:
    """Export models and read documents in the process of these tests."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, whose modules must not be imported."""
    code = "raise SystemExit('a module of the current folder was imported')"
    (tmp_path / "export").mkdir()
    for file in ("export/__init__.py", "function.py"):
        (tmp_path / file).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def documents(folder: Path, bundle: Path) -> Path:
    """A folder with a document, and a kept index so that the tests' model embeds it."""
    (folder / "notes").mkdir()
    write_story(folder / "notes" / "a.md", "An angry goose")
    shutil.copytree(bundle, kept_index(folder / "notes"))
    return folder / "notes"
