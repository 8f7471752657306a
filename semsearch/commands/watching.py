"""Make or update the index of folders in a process of its own, once or after each change of a file.

`serve` and `mcp` start it. It prints lines of JSON: the result of each update, and how many changes wait for the next
one. It ends when its standard input is closed, so it ends with the process that started it. A running server detects
that its bundle was replaced (FolderReloader).

Several of these processes can look at the same folders. The one that finds a change first updates the index, and holds
its lock meanwhile. The others find then that the index is current, or update it themselves if that process has died.
"""

import json
import math
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from semsearch.app.exit_codes import how_it_ended
from semsearch.app.shared_memory import SharedFailures
from semsearch.commands.console import TerminalConsole
from semsearch.commands.options import FolderOptions
from semsearch.commands.places import FileStates, FolderIndex, count_changes
from semsearch.commands.terminal import fail, visible
from semsearch.engine.errors import ExpectedError, naming_options
from semsearch.indexing.processes import keeping_worker, python_command
from semsearch.indexing.progress import showing_progress
from semsearch.indexing.replacing import BusyError

SECONDS_BETWEEN_SCANS = 0.5  # files are read after two scans that find the same: nothing is writing them any more
SECONDS_TO_BE_STILL = 2.0  # after a change; then they are read although they are still being written
SECONDS_BEFORE_RESTART = 1.0
SECONDS_BEFORE_RETRY = 5.0  # at least, after an update that failed
WAITING, RESULT = "waiting", "result"  # the kinds of lines that are printed
PAUSE_FACTOR = 10  # the pause is this many times as long as the update, so that tries take a tenth of a core at most


class IndexProcess:
    """The process that makes an index. With `watch` it goes on, and is started again if it dies."""

    def __init__(self, index: FolderIndex, *, watch: bool) -> None:
        """Start the process that makes the index."""
        self.updates: SharedFailures = SharedFailures()
        self.report: Callable[[str], object] = fail  # takes the error of an update after the first one
        self._title, self._watch = index.title, watch
        self._command = [*python_command("semsearch.commands.watching"), _as_argument(index)]
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
                        self._take(json.loads(line))
            code = process.returncode
            is_done = not self._watch and self._has_ended_first.is_set()
            if is_done or code == -signal.SIGINT or self._is_closed.wait(SECONDS_BEFORE_RESTART):
                return
            ending = f"{self._title}: the process that makes its index {how_it_ended(code)}"
            if not self._watch:
                self._note(f"{ending}; run the command again")
                return
            self._note(f"{ending}; it was started again")
            self._process = self._start()

    def _take(self, printed: object) -> None:
        """Take what the process printed; see `main`."""
        match printed:
            case {"waiting": int(files)}:
                self.updates.waiting = files
            case {"error": str(error), "is_made": bool(is_made)}:
                self._note(error, is_made)

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


def _as_argument(index: FolderIndex) -> str:
    folders = {name: str(path) for name, path in index.folders.items()}
    return json.dumps({"folders": folders, "bundle": str(index.bundle), "options": asdict(index.options)})


def _from_argument(word: str) -> FolderIndex:
    stated = json.loads(word)
    folders = {name: Path(path) for name, path in stated["folders"].items()}
    return FolderIndex(folders, Path(stated["bundle"]), FolderOptions(**stated["options"]))


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What came of an update: an error, "" if there is none, and whether there is an index of these files.

    Documents that were not read are an error too, although the others are in the index. can_pass is whether another try
    of the same files can do better.
    """

    error: str = ""
    is_made: bool = True
    can_pass: bool = False


def main(
    index: FolderIndex,
    *,
    watch: bool,
    pause: float = SECONDS_BEFORE_RETRY,
    interval: float = SECONDS_BETWEEN_SCANS,
    patience: float = SECONDS_TO_BE_STILL,
    clock: Callable[[], float] = monotonic,
) -> int:
    """Make or update the index, and again after each change if watch is true; return the exit code.

    An update that failed is tried again after `pause` seconds, or later if it took long. There are `interval` seconds
    between two looks at the files, which are read at the latest `patience` seconds after a change was found. The clock
    counts seconds.
    """
    before: FileStates | None = None
    indexed = index.known_states()
    result = UpdateResult()  # result of the update that read the files as `indexed` has them
    changed_at, retry_at = math.inf, math.inf
    printed: dict[str, str] = {}
    while True:
        shown = None
        try:
            found = index.states()
        except OSError as error:
            shown = UpdateResult(f"{index.title}: {error}", is_made=False)
        else:
            changed_at = math.inf if found == indexed else min(changed_at, clock())
            is_due = found != indexed or clock() >= retry_at
            is_still = before in (None, found) or clock() - changed_at >= patience
            if is_due and is_still:
                _print_waiting(printed, found, indexed)
                began = clock()
                done = _update(index, found)
                if done is not None:
                    indexed, result, changed_at, retry_at = found, done, math.inf, math.inf
                    printed.pop(RESULT, None)
                    if done.can_pass:
                        retry_at = clock() + max(pause, PAUSE_FACTOR * (clock() - began))
            if found == indexed:
                shown = result if result.error else UpdateResult(index.missing())
            _print_waiting(printed, found, indexed)
            before = found
        if shown is not None:
            _print_new(printed, RESULT, {"error": visible(shown.error), "is_made": shown.is_made})
            if not watch:
                return int(not shown.is_made)
        if select.select([sys.stdin], [], [], interval)[0]:
            return 0


def _print_waiting(printed: dict[str, str], found: FileStates, indexed: FileStates | None) -> None:
    waiting = 0 if found == indexed else count_changes(found, indexed)
    _print_new(printed, WAITING, {"waiting": waiting})


def _print_new(printed: dict[str, str], kind: str, content: Mapping[str, object]) -> None:
    """Print a line of JSON unless it is the last one of its kind."""
    line = json.dumps(content)
    if printed.get(kind) != line:
        print(line, flush=True)
        printed[kind] = line


def _update(index: FolderIndex, found: FileStates) -> UpdateResult | None:
    """Make or update the index, and return what came of it, None if another process does so."""
    try:
        with index.updating():
            if found == index.known_states():  # another process has updated it
                return UpdateResult()
            with showing_progress(TerminalConsole(stderr=True)) as on_progress:
                report = index.update(found, on_progress).report
    except BusyError:
        return None
    except ExpectedError as error:
        reason = str(error).partition("\n")[0]
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except Exception as error:  # noqa: BLE001  reported with its trace, and another try can succeed
        traceback.print_exc()
        reason = f"{index.title}: {error!r}"
    else:
        if not report.outdated:
            return UpdateResult()
        unread = f"{len(report.outdated):,} documents were not read, such as {report.outdated[0]}"
        return UpdateResult(f"{index.title}: {unread}", can_pass=bool(report.refused))
    return UpdateResult(reason, is_made=False, can_pass=True)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes sends it to this process too
    with keeping_worker(), naming_options():
        sys.exit(main(_from_argument(sys.argv[1]), watch="--watch" in sys.argv[2:]))
