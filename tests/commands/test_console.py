"""What `semsearch index` prints: progress, for any stream, without control of a terminal, and commands for a shell."""

import io
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.engine.bundle import check_bundle
from semsearch.indexing.progress import ProgressLines, showing_progress
from tests.project import run_in_a_shell


@pytest.fixture
def command(bundle_copy: Path, tmp_path: Path) -> str:
    """A command that replaces the texts of a bundle, from a file and with a column that ASCII cannot write."""
    (tmp_path / "żółw.csv").write_text("text,zażółć\nangry goose,1\n", encoding="utf-8")
    options = f"--text-column text --out {bundle_copy} --replace --verbose"
    return f"{sys.executable} -m semsearch index {tmp_path}/żółw.csv {options}"


def test_an_ascii_pipe_gets_plain_lines(command: str, bundle_copy: Path) -> None:
    code, out, err = run_in_a_shell(command, PYTHONIOENCODING="ascii", COLUMNS="300")
    assert (code, err) == (0, "")
    assert r"1 from \u017c\xf3\u0142w.csv" in out
    assert r"za\u017c\xf3\u0142\u0107 (number)" in out
    assert f"{bundle_copy}/ is ready. Try it: " in out
    assert "\nembed texts: 100%, " in out
    assert not {"\x1b", "\r"} & set(out)


def test_without_standard_streams_an_export_is_silent(command: str, bundle_copy: Path) -> None:
    assert run_in_a_shell(f"{command} <&- >&- 2>&-") == (0, "", "")
    index = check_bundle(bundle_copy).index
    assert index is not None
    assert index.rows == 1


def test_a_stdout_that_is_full_is_an_error_in_one_line(command: str) -> None:
    code, _, err = run_in_a_shell(f"{command} >/dev/full")
    assert (code, err) == (1, "error: No space left on device\n")


def test_a_reader_that_stops_early_ends_an_export_as_sigpipe_does(command: str) -> None:
    assert run_in_a_shell(f"{command} | true") == (141, "", "interrupted: run the command again\n")


def test_control_characters_of_texts_and_tables_are_displayed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "one\x1b[31m two\x9b \u202ethree\u2066\ttabbed\nnext"
    console = TerminalConsole()
    console.print(odd)
    console.print(f"[red]{odd}[/]")
    console.print(odd, markup=False)
    shown = "one\\x1b[31m two\\x9b \\u202ethree\\u2066 tabbed\nnext\n"
    assert capsys.readouterr().out == 3 * shown


def test_every_word_arrives_as_it_was() -> None:
    words = ["--out", "my bundle", "it's", "$HOME", "`date`", "*", "[b]", 'a"b', "ü;&|"]
    program, *shown = shlex.split(suggested(*words, Path("a b")))
    assert program == "semsearch"
    assert shown == [*words, "a b"]


class Clock:
    """A clock that the test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    """Standard output with someone in front of it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(out: io.StringIO, clock: Clock) -> ProgressLines:
    return ProgressLines(Console(file=out, highlight=False), interval=10, clock=clock)


def test_a_line_comes_at_most_every_interval_and_one_at_the_end(
    lines: ProgressLines, clock: Clock, out: io.StringIO
) -> None:
    lines("embed texts", 0)
    for second in range(1, 36):
        clock.seconds = second
        lines("embed texts", second / 40, second * 50)
    clock.seconds = 40
    lines("embed texts", 1, 2000)
    assert out.getvalue().splitlines() == [
        "embed texts: 25%, 50 texts/s",
        "embed texts: 50%, 50 texts/s",
        "embed texts: 75%, 50 texts/s",
        "embed texts: 100%, 50 texts/s, took 0:00:40",
    ]


def test_a_terminal_gets_bars_with_the_speed(clock: Clock) -> None:
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    with showing_progress(console) as progress:
        progress("export graph", 0)
        progress("export graph", 1)
        progress("embed texts", 0)
        progress("embed texts", 0.5, 60)
        progress("embed texts", 1, 120)
    printed = terminal.getvalue()
    assert "━━━" in printed
    assert "100%" in printed
    assert "texts/s" in printed
    assert "took" not in printed


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}])
def test_a_file_gets_lines_even_where_colours_are_asked_for(environment: dict[str, str], out: io.StringIO) -> None:
    console = Console(file=out, highlight=False, _environ=environment)
    with showing_progress(console) as progress:
        progress("embed texts", 0)
        progress("embed texts", 1, 120)
    assert out.getvalue().startswith("embed texts: 100%, ")
