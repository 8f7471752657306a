"""Make or update the index of a folder in a process of its own, once or after each change of a file.

`serve` and `mcp` start it. It prints one line after each update: its result as JSON. It ends when its standard input
is closed, so it ends with the process that started it. A running server detects that its bundle was replaced
(FolderReloader).
"""

import json
import math
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from semsearch.app.exit_codes import how_it_ended
from semsearch.app.shared_memory import SharedFailures
from semsearch.commands.console import TerminalConsole
from semsearch.commands.places import FileStates, file_states, kept_index, read_states, update
from semsearch.commands.terminal import fail, visible
from semsearch.engine.errors import ExpectedError
from semsearch.indexing.processes import python_command
from semsearch.indexing.progress import showing_progress

SECONDS_BETWEEN_SCANS = 0.5  # files are read after two scans that find the same: nothing is writing them any more
SECONDS_BEFORE_RESTART = 1.0
SECONDS_BEFORE_RETRY = 5.0  # at least, after an update that failed
PAUSE_FACTOR = 10  # the pause is this many times as long as the update, so that tries take a tenth of a core at most


class IndexProcess:
    """The process that makes the index of a folder. With `watch` it goes on, and is started again if it dies."""

    def __init__(self, path: Path, bundle: Path, *, watch: bool) -> None:
        """Start the process that makes the index of `path` in the folder `bundle`."""
        self.updates: SharedFailures = SharedFailures()
        self.report: Callable[[str], object] = fail  # takes the error of an update after the first one
        self._path, self._watch = path, watch
        self._command = [*python_command("semsearch.commands.watching"), str(path), str(bundle)]
        if watch:
            self._command.append("--watch")
        self._has_ended_first = Event()
        self._is_made = Event()
        self._is_closed = Event()
        self._process = self._start()
        self._following = Thread(target=self._follow, name="index", daemon=True)
        self._following.start()

    def error_of_first(self, timeout: float | None = None) -> str | None:
        """Wait for the first update, and return why there is no index, "" if there is one, or None if it still runs."""
        if not self._has_ended_first.wait(timeout):
            return None
        if self._is_made.is_set():
            return ""
        return self.updates.error or ""

    def wait_until_made(self) -> None:
        """Wait until an update has made an index. Each one that fails is reported."""
        self._is_made.wait()

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process after its current update."""
        self._is_closed.set()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._following.join()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def _follow(self) -> None:
        """Note the result of each update, and start the process again when it dies."""
        while True:
            with self._process as process:
                assert process.stdout is not None
                for line in process.stdout:
                    with suppress(ValueError):  # a library printed it
                        self._note(*json.loads(line))
            code = process.returncode
            is_done = not self._watch and self._has_ended_first.is_set()
            if is_done or code == -signal.SIGINT or self._is_closed.wait(SECONDS_BEFORE_RESTART):
                return
            ending = f"{self._path}: the process that makes its index {how_it_ended(code)}"
            if not self._watch:
                self._note(f"{ending}; run the command again")
                return
            self._note(f"{ending}; it was started again")
            self._process = self._start()

    def _note(self, error: str, is_made: bool = False) -> None:
        """Note the error of an update, "" if there is none, and whether it has made an index nevertheless."""
        is_reported = error == self.updates.error
        if not error:
            self.updates.succeed()
        else:
            self.updates.fail(error)
            # the command that waits for the first update reports why there is no index
            if not is_reported and (is_made or self._has_ended_first.is_set()):
                self.report(error)
        if is_made or not error:
            self._is_made.set()
        self._has_ended_first.set()


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What came of an update: an error, "" if there is none, and whether there is an index of these files.

    Documents that were not read are an error too, although the others are in the index. can_pass is whether another try
    of the same files can do better.
    """

    error: str = ""
    is_made: bool = True
    can_pass: bool = False


def main(path: Path, bundle: Path, *, watch: bool, pause: float = SECONDS_BEFORE_RETRY) -> int:
    """Make or update the index, and again after each change if watch is true; return the exit code.

    An update that failed is tried again after `pause` seconds, or later if it took long.
    """
    before: FileStates | None = None
    indexed = read_states(bundle) if bundle == kept_index(path) else None
    result, printed = UpdateResult(), None  # result of the update to `indexed`, and what was printed last
    retry_at = math.inf
    while True:
        shown = None
        try:
            found = file_states(path, bundle)
        except OSError as error:
            shown = UpdateResult(f"{path}: {error}", is_made=False)
        else:
            is_due = found != indexed or monotonic() >= retry_at
            if is_due and before in (None, found):  # two scans found the same files
                began = monotonic()
                result, printed = _update(path, bundle, found), None
                indexed, retry_at = found, math.inf
                if result.can_pass:
                    retry_at = monotonic() + max(pause, PAUSE_FACTOR * (monotonic() - began))
            if found == indexed:
                shown = result
            before = found
        if shown is not None and shown != printed:
            print(json.dumps([visible(shown.error), shown.is_made]), flush=True)
            printed = shown
            if not watch:
                return int(not shown.is_made)
        if select.select([sys.stdin], [], [], SECONDS_BETWEEN_SCANS)[0]:
            return 0


def _update(path: Path, bundle: Path, found: FileStates) -> UpdateResult:
    """Make or update the index."""
    try:
        with showing_progress(TerminalConsole(stderr=True)) as on_progress:
            report = update(path, bundle, found, on_progress).report
    except ExpectedError as error:
        reason = str(error).partition("\n")[0]
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except Exception as error:  # noqa: BLE001  reported with its trace, and another try can succeed
        traceback.print_exc()
        reason = f"{path}: {error!r}"
    else:
        if not report.outdated:
            return UpdateResult()
        found_outdated = f"{path}: {len(report.outdated):,} documents were not read, such as {report.outdated[0]}"
        return UpdateResult(found_outdated, can_pass=bool(report.refused))
    return UpdateResult(reason, is_made=False, can_pass=True)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes sends it to this process too
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), watch="--watch" in sys.argv[3:]))
