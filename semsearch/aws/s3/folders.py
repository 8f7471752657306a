"""Folders that processes on this machine share: the first process fills a folder, and the last user removes it.

TMPDIR/semantic-search-USER/NAME/        a whole bundle; its files are mapped
TMPDIR/semantic-search-USER/NAME.part/   the same while it is filled
TMPDIR/semantic-search-USER/NAME.lock    locked as shared by each process that uses the folder, and alone by the one
                                         that fills it
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from semsearch.engine.bundle import BundleError

LOCK = ".lock"
UNFINISHED = ".part"
SECONDS_BETWEEN_TRIES = 0.05  # while another process fills a folder


class SharedFolder:
    """A folder that is complete. It is removed when this object is closed and no other process uses it."""

    def __init__(self, path: Path, lock: int) -> None:
        """Take a folder and its open lock file, which this process has locked as shared or not at all."""
        self.path = path
        self._lock = lock
        self._process = os.getpid()

    def close(self) -> None:
        """Release the folder, and remove it if no other process uses it. Mapped files stay readable."""
        if self._process == os.getpid():  # a forked process shares the lock of its parent, which still uses the folder
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while other processes use the folder
                if os.fstat(self._lock).st_nlink:  # 0 if another process has removed the file
                    # this one exists if a process was killed while it filled the folder
                    shutil.rmtree(self.path.with_suffix(UNFINISHED), ignore_errors=True)
                    shutil.rmtree(self.path, ignore_errors=True)
                    self.path.with_suffix(LOCK).unlink()
        os.close(self._lock)


def own_folder(environment: Mapping[str, str]) -> Path:
    """Return this user's own folder for shared folders. Raises BundleError if other users can write there."""
    folder = Path(environment.get("TMPDIR") or "/tmp") / f"semantic-search-{os.getuid()}"  # noqa: S108  checked below
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BundleError(f"{folder}: other users can write there; remove it, or set TMPDIR to a folder of your own")
    return folder


def remove_unused(folder: Path) -> None:
    """Remove the shared folders that no process uses: those of killed processes."""
    for path in folder.glob(f"*{LOCK}"):
        with suppress(FileNotFoundError):
            SharedFolder(path.with_suffix(""), os.open(path, os.O_RDWR)).close()


def open_shared(path: Path, fill: Callable[[Path], None]) -> SharedFolder:
    """Return a shared folder. If it does not exist, call `fill` with an empty folder and rename that to `path`.

    Other processes that open the same folder wait meanwhile. If `fill` raises, what it wrote is removed.
    """
    while True:
        lock = os.open(path.with_suffix(LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        folder = SharedFolder(path, lock)
        with closed_if_failed(folder):
            if not path.is_dir():
                _fill_alone(path, lock, fill)
            if path.is_dir():
                fcntl.flock(lock, fcntl.LOCK_SH)  # another process can remove the folder before this returns
                if path.is_dir() and os.fstat(lock).st_nlink:
                    return folder
        os.close(lock)


def _fill_alone(path: Path, lock: int, fill: Callable[[Path], None]) -> None:
    """Fill a folder, or return after a while if another process has locked it.

    Waiting for the lock would take too long: the process that fills the folder keeps it afterwards, as a shared lock,
    for as long as it uses the folder.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(SECONDS_BETWEEN_TRIES)
        return
    # otherwise another process has just filled the folder, or removed the lock file
    if not path.is_dir() and os.fstat(lock).st_nlink:
        with _removed_if_unfinished(path.with_suffix(UNFINISHED)) as part:
            fill(part)
            part.rename(path)


@contextmanager
def closed_if_failed(folder: SharedFolder) -> Iterator[None]:
    """Close a folder if the block raises any exception, also when the process is ended."""
    try:
        yield
    except BaseException:
        folder.close()
        raise


@contextmanager
def _removed_if_unfinished(part: Path) -> Iterator[Path]:
    shutil.rmtree(part, ignore_errors=True)  # a killed process left it
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
