"""Make or update the index of a folder in a process of its own, once or after each change of a file.

`serve` and `mcp` start it. It prints one line after each update: its error, or nothing. It ends when its standard input
is closed, so it ends with the process that started it. A running server detects that its bundle was replaced
(FolderReloader).
"""

import select
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from threading import Event, Thread

from semsearch.app.children import SharedFailures, how_it_ended
from semsearch.commands.console import TerminalConsole
from semsearch.commands.places import FileStates, file_states, follows_symlinks, kept_index, read_states, update
from semsearch.commands.terminal import fail, visible
from semsearch.engine.errors import ExpectedError
from semsearch.indexing.processes import python_command
from semsearch.indexing.progress import showing_progress

SECONDS_BETWEEN_SCANS = 0.5  # files are read after two scans that find the same: nothing is writing them any more
SECONDS_BEFORE_RESTART = 1.0


class IndexProcess:
    """The process that makes the index of a folder. With `watch` it goes on, and is started again if it dies."""

    def __init__(self, path: Path, bundle: Path, *, watch: bool) -> None:
        """Start the process that makes the index of `path` in the folder `bundle`."""
        self.updates: SharedFailures = SharedFailures()
        self._path, self._watch = path, watch
        self._command = [*python_command("semsearch.commands.watching"), str(path), str(bundle)]
        if watch:
            self._command.append("--watch")
        self._has_ended_first = Event()
        self._has_succeeded = Event()
        self._is_closed = Event()
        self._process = self._start()
        self._following = Thread(target=self._follow, name="index", daemon=True)
        self._following.start()

    def error_of_first(self, timeout: float | None = None) -> str | None:
        """Wait for the first update, and return its error, "" if it succeeded, or None if it still runs."""
        if not self._has_ended_first.wait(timeout):
            return None
        return self.updates.error or ""

    def wait_for_success(self) -> None:
        """Wait until an update succeeds. Each one that fails is reported."""
        self._has_succeeded.wait()

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
                    self._note(line.strip())
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

    def _note(self, error: str) -> None:
        if not error:
            self.updates.succeed()
            self._has_succeeded.set()
        else:
            self.updates.fail(error)
            if self._has_ended_first.is_set():  # otherwise the command that waits for the first update reports it
                fail(error)
        self._has_ended_first.set()


def main(path: Path, bundle: Path, *, watch: bool) -> int:
    """Make or update the index, and again after each change if watch is true; return the exit code."""
    before: FileStates | None = None
    indexed = read_states(bundle) if bundle == kept_index(path) else None
    result, printed = "", None  # the error of the update to `indexed`, and what was printed last
    while True:
        error = None
        try:
            found = file_states(path, follow_symlinks=follows_symlinks(bundle))
        except OSError as failure:
            error = f"{path}: {failure}"
        else:
            if found != indexed and before in (None, found):  # two scans found the same files
                result, printed = _update(path, bundle, found), None
                indexed = found
            if found == indexed:
                error = result
            before = found
        if error is not None and error != printed:
            print(visible(error), flush=True)
            printed = error
            if not watch:
                return int(bool(error))
        if select.select([sys.stdin], [], [], SECONDS_BETWEEN_SCANS)[0]:
            return 0


def _update(path: Path, bundle: Path, found: FileStates) -> str:
    """Make or update the index, and return its error, or "" if there is none."""
    try:
        with showing_progress(TerminalConsole(stderr=True)) as on_progress:
            update(path, bundle, found, on_progress)
    except ExpectedError as error:
        return str(error).partition("\n")[0]
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    except Exception as error:  # noqa: BLE001  reported with its trace, and the next change of a file can succeed
        traceback.print_exc()
        return f"{path}: {error!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), watch="--watch" in sys.argv[3:]))
