"""Run tests with a change of the code: each in a copy of the checkout, several at once.

A child process is forked for each change. It need not import what is imported here, which saves it two seconds: large
packages that start no threads, and nothing of this project.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import boto3  # noqa: F401
import cyclopts  # noqa: F401
import fastapi  # noqa: F401
import hypothesis  # noqa: F401
import numpy  # noqa: F401
import pytest

from tests.mutants.changes import Change
from tests.mutants.choice import Choice
from tests.project import ROOT

FIRST_FILES = 4  # their tests run before those of other files, which take seconds to import
MOST_BYTES = 6 << 30  # memory of a process: a change can make a loop endless or an array too large
WAITING = 120  # seconds that tests are allowed to wait for other processes and programs
NOT_FOUND = "ERROR: not found"  # words of pytest, if a test was removed after it was recorded
OWN_ERROR = 70  # an exit code that pytest does not have
_times = count(1_000_000_000)


class Failures:
    """A plugin of pytest that writes the names of failed tests."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


@dataclass(slots=True)
class Trial:
    """A change and what became of it."""

    change: Change
    choice: Choice
    checkout: Path = Path()  # that it is made in
    parts: list[list[str]] = field(default_factory=list)  # tests that have not started
    seconds: float = 0  # processor time of the tests that have ended
    noticed_by: str = ""  # a test, or how pytest ended


def divided(tests: list[str]) -> list[list[str]]:
    """Return the tests of the first files, and the others."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    first = [test for test in tests if test.partition("::")[0] in files[:FIRST_FILES]]
    return [part for part in (first, [test for test in tests if test not in first]) if part]


def start(checkout: Path, tests: list[str], seconds: float, *options: str) -> int:
    """Fork a process that runs tests and ends with the exit code of pytest; return its id."""
    (checkout.parent / "failures").unlink(missing_ok=True)
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        output = os.open(checkout.parent / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.alarm(WAITING + int(10 * seconds))
        processor = 20 + int(4 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        os.chdir(checkout)
        os.environ["PYTHONPATH"] = str(checkout)  # for the processes that tests start
        sys.argv, sys.path[0] = ["pytest"], str(checkout)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        # Rewriting assertions would need packages that are not imported yet.
        settings = [
            "-q",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "--hypothesis-profile=mutants",
            f"--basetemp={checkout.parent}/tmp",
        ]
        os._exit(pytest.main([*settings, *options, *tests], plugins=[Failures(checkout.parent / "failures")]))
    finally:  # after an exception only
        traceback.print_exc()
        os._exit(OWN_ERROR)


def ending(checkout: Path, status: int) -> str:
    """Return the test that failed first, or how pytest ended, or nothing if all passed."""
    failures = checkout.parent / "failures"
    if failures.exists():
        return failures.read_text(encoding="utf-8").splitlines()[0]
    code = os.waitstatus_to_exitcode(status)
    output = (checkout.parent / "output").read_text(encoding="utf-8", errors="replace")
    if code == OWN_ERROR:
        sys.exit(output)
    if code == pytest.ExitCode.USAGE_ERROR and NOT_FOUND in output:
        return NOT_FOUND
    if code == 0:
        return ""
    return signal.Signals(-code).name if code < 0 else f"pytest's exit code {code}"


def run(trials: Iterable[Trial], checkouts: Iterable[Path]) -> Iterator[Trial]:
    """Run one trial in each checkout at once, and yield each when it has ended."""
    waiting, free, running = iter(trials), list(checkouts), dict[int, Trial]()
    while True:
        while free and (trial := next(waiting, None)) is not None:
            trial.checkout, trial.parts = free.pop(), divided(trial.choice.tests)
            changed = trial.checkout / trial.change.path
            changed.write_bytes(trial.change.source)
            modified = next(_times)  # never the same: Python compiles a module again if its time or size differs
            os.utime(changed, (modified, modified))
            running[start(trial.checkout, trial.parts.pop(0), trial.choice.seconds, "-x")] = trial
        if not running:
            return
        pid, status, used = os.wait4(-1, 0)
        trial = running.pop(pid)
        end_group(pid)
        trial.seconds += used.ru_utime + used.ru_stime
        trial.noticed_by = ending(trial.checkout, status)
        if trial.parts and not trial.noticed_by:
            running[start(trial.checkout, trial.parts.pop(0), trial.choice.seconds, "-x")] = trial
            continue
        shutil.copy2(ROOT / trial.change.path, trial.checkout / trial.change.path)
        free.append(trial.checkout)
        yield trial


def end_group(pid: int) -> None:
    """End the processes that the tests of a child process have left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def failing(checkout: Path, tests: list[str]) -> list[str]:
    """Return those of the tests that fail without a change."""
    pid = start(checkout, tests, 60 * len(tests))
    os.waitpid(pid, 0)
    end_group(pid)
    failures = checkout.parent / "failures"
    return failures.read_text(encoding="utf-8").splitlines() if failures.exists() else []
