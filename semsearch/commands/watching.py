"""Make or update the index of a folder in a process of its own, once or after each change of a file.

`serve` and `mcp` start it. It prints one line when the first index is there: its error, or nothing. It ends when its
standard input is closed, so it ends with the process that started it. A running server detects that its bundle was
replaced (FolderReloader).
"""

import select
import subprocess
import sys
from pathlib import Path

from semsearch.commands.console import TerminalConsole
from semsearch.commands.places import FileStates, file_states, kept_index, read_states, update
from semsearch.commands.terminal import fail
from semsearch.engine.errors import ExpectedError
from semsearch.indexing.processes import python_command
from semsearch.indexing.progress import showing_progress

SECONDS_BETWEEN_SCANS = 0.5  # files are read after two scans that find the same: nothing is writing them any more


def start(path: Path, bundle: Path, *, watch: bool) -> subprocess.Popen[str]:
    """Start the process that makes the index of `path` in the folder `bundle`."""
    words = [str(path), str(bundle), *(["--watch"] if watch else [])]
    command = [*python_command("semsearch.commands.watching"), *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603


def main(path: Path, bundle: Path, *, watch: bool) -> int:
    """Make or update the index, and again after each change if watch is true; return the exit code."""
    before = file_states(path)
    indexed = read_states(bundle) if bundle == kept_index(path) else None
    is_first = True
    while True:
        found = file_states(path)
        error = ""
        if found == before and found != indexed:  # two scans found the same files
            error = _update(path, bundle, found)
            indexed = found
        if is_first and found == indexed:
            print(error, flush=True)
            if error or not watch:
                return int(bool(error))
            is_first = False
        elif error:
            fail(error)
        before = found
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
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), watch="--watch" in sys.argv[3:]))
