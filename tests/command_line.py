"""The command line of the export, run in this process: what it prints, its exit code and what lies on disk."""

import csv
import io
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from cyclopts import App

from semsearch.commands.main import app, dispatch
from semsearch.engine.bundle import UPDATE

STORY_COLUMNS = ("--text-column", "title", "--id-column", "number")  # for the fixture `stories`


@dataclass(frozen=True, slots=True)
class Run:
    """The exit code of a command and what it printed."""

    code: int | str | None
    out: str
    err: str


def run(*arguments: object, program: App = app) -> Run:
    """Run the command in a terminal that is wide enough for whole tables, unless the test states its width."""
    out, err = io.StringIO(), io.StringIO()
    terminal = patch.dict(os.environ, COLUMNS=os.environ.get("COLUMNS", "300"))
    with terminal, redirect_stdout(out), redirect_stderr(err):
        try:
            code: int | str | None = dispatch([str(argument) for argument in arguments], program)
        except SystemExit as stop:
            code = stop.code
        except KeyboardInterrupt:
            code = 130  # as a shell says of a program that SIGINT has ended
    return Run(code, out.getvalue(), err.getvalue())


def export_texts(corpus: Path, out: Path, *options: object) -> Run:
    """Run `semsearch index`, which replaces texts in `out` and has to succeed without a message."""
    done = run("index", corpus, "--out", out, "--replace", "--verbose", *options)
    assert (done.code, done.err) == (0, ""), done.err
    return done


def error_line(done: Run) -> str:
    """Return the one line that was printed as an error."""
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    return line


def summary(done: Run, name: str) -> str:
    """Return the value that the summary shows beside a name."""
    (line,) = [line for line in done.out.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a bundle that its manifest can list, and source.txt.

    The folder of an export that was stopped is left out, and so is update.safetensors: it has times of files.
    """
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != UPDATE}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_texts(path: Path, texts: list[str]) -> Path:
    """Write a CSV file with the one column "text"."""
    return write_csv(path, [{"text": text} for text in texts])
