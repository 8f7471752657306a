"""What `python -m export` prints reaches any stream, controls no terminal, and can be pasted into a shell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from export.terminal import TerminalConsole, python_module
from function.engine.bundle import open_bundle
from tests.project import run_in_a_shell


@pytest.fixture
def command(bundle_copy: Path, tmp_path: Path) -> str:
    """A command that replaces the texts of a bundle, from a file and with a column that ASCII cannot write."""
    (tmp_path / "żółw.csv").write_text("text,zażółć\nangry goose,1\n", encoding="utf-8")
    return f"{sys.executable} -m export corpus --corpus {tmp_path}/żółw.csv --text-column text --out {bundle_copy}"


def test_an_ascii_pipe_gets_plain_lines(command: str, bundle_copy: Path) -> None:
    code, out, err = run_in_a_shell(command, PYTHONIOENCODING="ascii", COLUMNS="300")
    assert (code, err) == (0, "")
    assert r"1 from \u017c\xf3\u0142w.csv" in out
    assert r"za\u017c\xf3\u0142\u0107 (string)" in out
    assert f"{bundle_copy}/ is ready. Try it: " in out
    assert "\nembed texts: 100%, " in out
    assert not {"\x1b", "\r"} & set(out)


def test_without_standard_streams_an_export_is_silent(command: str, bundle_copy: Path) -> None:
    assert run_in_a_shell(f"{command} <&- >&- 2>&-") == (0, "", "")
    index = open_bundle(bundle_copy).index
    assert index is not None
    assert index.rows == 1


def test_a_stdout_that_is_full_is_named_instead_of_the_disk_of_the_bundle(command: str) -> None:
    code, _, err = run_in_a_shell(f"{command} >/dev/full")
    assert (code, err) == (1, "error: standard output: No space left on device\n")


def test_a_reader_that_stops_early_ends_an_export_as_sigpipe_does(command: str) -> None:
    assert run_in_a_shell(f"{command} | true") == (141, "", "interrupted: nothing was changed\n")


def test_control_characters_of_texts_and_tables_are_displayed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "one\x1b[31m two\x9b \u202ethree\u2066\ttabbed\nnext"
    console = TerminalConsole()
    console.print(odd)
    console.print(f"[red]{odd}[/]")
    console.print(odd, markup=False)
    shown = "one\\x1b[31m two\\x9b \\u202ethree\\u2066 tabbed\nnext\n"
    assert capsys.readouterr().out == 3 * shown


def test_a_name_in_an_error_controls_no_terminal(tmp_path: Path) -> None:
    code, _, err = run_in_a_shell(f"{sys.executable} -m export verify $'{tmp_path}/\\e[31mnone'")
    assert code == 1
    assert err.startswith(rf"error: {tmp_path}/\x1b[31mnone: is not a folder")
    assert "\x1b" not in err


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
