"""Make the index of a folder in child processes: once, or again each time that its files change.

`python -P -m semsearch.watching FOLDER BUNDLE [--watch]` ends when its standard input is closed, and so with the
process that started it. A running server notices by itself that its bundle was replaced (function/reloading.py).
"""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from semsearch.places import MODULE, index_command

SECONDS_BETWEEN_SCANS = 1.0
SECONDS_TO_SETTLE = 0.3  # without a change, before files are read that are being written


def start(path: Path, bundle: Path, *, watch: bool) -> subprocess.Popen[bytes]:
    """Return the process that makes the index; standard output has the error of the first one, if it fails."""
    command = [*MODULE, "semsearch.watching", str(path), str(bundle), *(["--watch"] if watch else [])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  our own command


def file_states(path: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of the last change of each file that an index is made of."""
    found = {}
    for folder, folders, files in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        folders[:] = [name for name in folders if name[0] not in "._"]
        for file in (f"{folder}/{name}" for name in files if name[0] not in "._"):
            try:
                status = os.stat(file)  # noqa: PTH116  a folder can have 100,000 files
                found[file] = status.st_size, status.st_mtime_ns
            except FileNotFoundError:  # it has just been removed
                continue
    return found


def main(path: Path, bundle: Path, *, watch: bool) -> int:
    """Make the index, and if watch is true, make it again after each change. Return 1 if the first one fails."""
    seen = None
    while True:
        if (found := file_states(path)) != seen:
            time.sleep(SECONDS_TO_SETTLE)
            if file_states(path) != found:
                continue
            is_first, seen = seen is None, found
            command = index_command(path, bundle)
            done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, check=False)  # noqa: S603
            sys.stderr.buffer.write(done.stderr)
            if done.returncode and is_first:
                sys.stdout.buffer.write(done.stderr.strip().rpartition(b"\n")[2])
                return 1
        if not watch or select.select([sys.stdin], [], [], SECONDS_BETWEEN_SCANS)[0]:
            return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), watch="--watch" in sys.argv[3:]))
