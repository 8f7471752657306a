"""A printed command, pasted into a shell, starts this Python with these words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from export.terminal import python_module

ECHO = "import json, sys\nprint(json.dumps([sys.executable, *sys.argv[1:]]))\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a module that prints what it was called with."""
    (tmp_path / "echo_words.py").write_text(ECHO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paste(command: str) -> list[str]:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def test_every_word_arrives_as_it_was(here: Path) -> None:
    words = ["--out", "my bundle", "it's", "$HOME", "`date`", "*", "[b]", 'a"b', "ü;&|"]
    assert paste(python_module("echo_words", *words, Path("a b")))[1:] == [*words, "a b"]


def test_the_python_is_this_one_also_outside_its_environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert Path(paste(python_module("echo_words"))[0]).samefile(sys.executable)


def test_an_activated_environment_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert python_module("export", "--help") == "python -m export --help"


def test_an_environment_in_the_working_folder_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert python_module("export") == ".venv/bin/python -m export"
