"""What `python -m export` prints reaches any stream and controls no terminal."""

import sys
from pathlib import Path

import pytest

from export.terminal import TerminalConsole
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
