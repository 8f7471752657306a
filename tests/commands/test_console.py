"""What commands write to any stream, without control of a terminal, and how they end, whatever happens to a stream."""

import errno
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from cyclopts import App
from rich.console import Console

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.main import dispatch
from semsearch.commands.options import _shown_default
from semsearch.engine.bundle import check_bundle
from semsearch.engine.errors import ExpectedError, OptionError
from semsearch.indexing.progress import ProgressLines, showing_progress
from tests.project import ROOT, needs_linux, run_in_a_shell
from tests.server.running import RUNNING


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
    assert check_bundle(bundle_copy).corpus.rows == 1


@needs_linux("/dev/full")
def test_a_stdout_that_is_full_is_an_error_in_one_line(command: str) -> None:
    code, _, err = run_in_a_shell(f"{command} >/dev/full")
    assert (code, err) == (1, "error: No space left on device\n")


def test_a_reader_that_stops_early_ends_an_export_as_sigpipe_does(command: str) -> None:
    assert run_in_a_shell(f"{command} | true") == (141, "", "interrupted: run the command again\n")


def test_a_server_needs_no_standard_output(bundle: Path) -> None:
    command = f"exec {sys.executable} -m semsearch serve {bundle} --port 0 --workers 1 >&- <&-"
    with subprocess.Popen(["bash", "-c", command], cwd=ROOT, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            address = next(found[1] for line in server.stderr if (found := RUNNING.search(line.decode())))
            assert httpx.get(f"{address}/health", timeout=60).status_code == 200
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0
    assert b"Traceback" not in err


SIGNALLED = """
import json, signal
from semsearch.commands.terminal import run

def import_compiled_module():
    try:
        signal.raise_signal(signal.{name})
    except BaseException:
        raise ImportError("initialization failed") from None  # as such modules do

print(json.dumps(run({work})))
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("work", ["lambda: signal.raise_signal(signal.{name})", "import_compiled_module"])
def test_a_signal_ends_a_command_with_its_code(
    in_a_new_process: Callable[..., Any], work: str, name: str, code: int
) -> None:
    assert in_a_new_process(SIGNALLED.replace("{work}", work).replace("{name}", name)) == code


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
    _, *shown = shlex.split(suggested(*words, Path("a b")))
    assert shown == [*words, "a b"]


@pytest.mark.parametrize(
    ("on_path", "folder", "program"),
    [
        (True, ".", "semsearch"),
        (False, ".", "search env/bin/semsearch"),
        (False, "docs", "{tmp}/search env/bin/semsearch"),
    ],
)
def test_a_suggested_command_is_one_that_the_shell_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: bool, folder: str, program: str
) -> None:
    programs = tmp_path / "search env" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (programs / "semsearch").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", str(programs) if on_path else os.defpath)
    monkeypatch.chdir(tmp_path / folder)
    assert shlex.split(suggested("serve", "bundle")) == [program.format(tmp=tmp_path), "serve", "bundle"]


def test_a_line_comes_at_most_every_interval_and_one_at_the_end() -> None:
    out = io.StringIO()
    now = 0
    lines = ProgressLines(Console(file=out, highlight=False), interval=10, clock=lambda: now)
    lines("embed texts", 0)
    for second in range(1, 36):
        now = second
        lines("embed texts", second / 40, second * 50)
    now = 40
    lines("embed texts", 1, 2000)
    assert out.getvalue().splitlines() == [
        "embed texts: 25%, 50 texts/s",
        "embed texts: 50%, 50 texts/s",
        "embed texts: 75%, 50 texts/s",
        "embed texts: 100%, 50 texts/s, took 0:00:40",
    ]


class Terminal(io.StringIO):
    """Standard output with someone in front of it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_bars_with_the_speed() -> None:
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
def test_a_file_gets_lines_even_where_colours_are_asked_for(environment: dict[str, str]) -> None:
    out = io.StringIO()
    with showing_progress(Console(file=out, highlight=False, _environ=environment)) as progress:
        progress("embed texts", 0)
        progress("embed texts", 1, 120)
    assert out.getvalue().startswith("embed texts: 100%, ")


def noted(error: BaseException, *notes: str) -> BaseException:
    for note in notes:
        error.add_note(note)
    return error


FULL = OSError(errno.ENOSPC, "No space left", "a file")


@pytest.mark.parametrize(
    ("name", "outcome", "code", "err"),
    [
        ("index", None, 0, ""),
        ("index", 3, 3, ""),
        ("index", "text", 0, ""),
        ("index", noted(ExpectedError("one\ntwo"), "a note", "more"), 1, "error: one (a note) (more)\n"),
        ("index", OptionError("some_name", "bad"), 2, "error: --some-name: bad\n"),
        ("index", FULL, 1, "error: a file: No space left\n"),
        ("query", FULL, 1, "error: a file: No space left\n"),
        ("index", noted(OSError("odd"), "a note"), 1, "error: odd (a note)\n"),
        ("query", OSError("odd"), OSError, ""),
        ("index", BrokenPipeError(errno.EPIPE, "x", "a file"), BrokenPipeError, ""),
        ("index", KeyboardInterrupt(), KeyboardInterrupt, "interrupted: run the command again\n"),
        ("index", noted(SystemExit(143), "b\x07 is", "kept"), SystemExit, "interrupted: b\\x07 is kept\n"),
        ("query", KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
)
def test_a_command_ends_with_its_code_or_the_error_of_a_stream(
    capsys: pytest.CaptureFixture[str], name: str, outcome: Any, code: Any, err: str
) -> None:
    def command() -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    program = App("semsearch")
    program.command(command, name=name)
    if isinstance(code, int):
        assert dispatch([name], program) == code
    else:
        with pytest.raises(code):
            dispatch([name], program)
    assert capsys.readouterr().err == err


ENDS = """
import errno, json, os, signal, sys
from semsearch.commands.terminal import run
def explain(error):
    return f"explained: {error}"
def fail(error):
    raise error
found = [
    run(lambda: 5),
    run(lambda: fail(SystemExit(7))),
    run(lambda: fail(SystemExit("text"))),
    run(lambda: fail(KeyboardInterrupt())),
    run(lambda: fail(ImportError("x")), explain_import=explain),
]
try:
    run(lambda: fail(ImportError("y")))
except ImportError as error:
    found.append(str(error))
signal.signal(signal.SIGINT, signal.SIG_IGN)
found.append(run(lambda: signal.getsignal(signal.SIGINT) == signal.SIG_IGN))
run(lambda: print("\\u017c\\ud800"), "ascii") # as a terminal that has these no more
for error in (OSError("odd"), OSError(errno.ENOSPC, "No space", "file"), BrokenPipeError()):
    found.append(run(lambda: fail(error)))
print("this goes nowhere", flush=True)
print(json.dumps(found), file=sys.stderr)
"""


def test_all_ways_in_which_a_command_can_end() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], cwd=ROOT, capture_output=True, text=True, check=True)
    *errors, found = done.stderr.splitlines()
    assert json.loads(found) == [5, 7, 1, 130, 1, "y", True, 1, 1, 141]
    assert errors == ["error: explained: x", "error: standard output: odd", "error: file: No space"]
    assert done.stdout == "\\u017c\\ud800\n"


CLOSED = """
import os, sys
from semsearch.commands.terminal import run
def command():
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        stream = getattr(sys, name)
        assert (stream.fileno(), stream.mode, os.get_inheritable(number)) == (number, mode, True), name
        assert os.readlink(f"/proc/self/fd/{number}") == "/dev/null"
    sys.stdin.close()
    os.fstat(0)
    return 9
os._exit(run(command))
"""


@needs_linux("/proc")
def test_streams_that_are_closed_are_the_null_device() -> None:
    assert run_in_a_shell(f"{sys.executable} -c {shlex.quote(CLOSED)} <&- >&- 2>&-")[0] == 9


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, None), (False, None), ((), None), ("", None), (("a", "b"), "a, b"), (0.5, "0.5"), (True, "True")],
)
def test_a_default_is_shown_unless_it_is_none(value: object, shown: str | None) -> None:
    assert _shown_default(value) == shown
