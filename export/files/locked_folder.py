"""Folders for unfinished files. A folder is locked while its process runs; one without a lock is abandoned.

What is finished and worth keeping stands in the folder's own folder `finished`. It outlives an error and a killed
process, and the next process that writes into the same parent takes it over.

The system releases the lock of a killed process. A process id instead of a lock would fail, because ids are reused and
processes in several containers can have the same id.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX, SUFFIX = ".semantic-search-", ".partial"
NAME = re.compile(re.escape(PREFIX) + r"\w+" + re.escape(SUFFIX))
FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A folder and the open descriptor that holds its lock."""

    path: Path
    descriptor: int


@contextmanager
def unfinished_folder(parent: Path) -> Iterator[LockedFolder]:
    """Yield a new, empty and locked folder in `parent`.

    At the end, unless it was renamed, the folder is removed, or all of it but what is in its folder FINISHED.
    """
    folder = _make_locked(parent)
    try:
        yield folder
    finally:
        _remove_unfinished(folder.path)
        os.close(folder.descriptor)


def _remove_unfinished(folder: Path) -> None:
    if not _pieces(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.is_file():
            with suppress(OSError):  # what cannot be removed stays
                path.unlink()
        elif path.name != FINISHED:
            shutil.rmtree(path, ignore_errors=True)


def _pieces(folder: Path) -> list[Path]:
    """Return what is finished in an unfinished folder."""
    return sorted((folder / FINISHED).iterdir()) if (folder / FINISHED).is_dir() else []


def remove_abandoned(parent: Path, heir: Path | None = None) -> None:
    """Remove the unfinished folders of processes that were killed; ignore those that cannot be removed.

    What is finished in them first moves into the folder FINISHED of the unfinished folder `heir`, if there is one.
    """
    for path in _abandoned(parent):
        if heir is not None:
            for piece in _pieces(path):
                (heir / FINISHED).mkdir(exist_ok=True)
                if not (heir / FINISHED / piece.name).exists():
                    piece.rename(heir / FINISHED / piece.name)
        shutil.rmtree(path, ignore_errors=True)


def find_kept(parent: Path) -> Path | None:
    """Return a folder of a process that ended or was killed, if something finished is in it; else None."""
    return next((path for path in _abandoned(parent) if _pieces(path)), None)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Yield the unfinished folders without a process, each locked until the next is asked for."""
    for path in sorted(parent.iterdir()):
        if NAME.fullmatch(path.name):
            with trying_lock(path) as is_abandoned:
                if is_abandoned:
                    yield path


@contextmanager
def trying_lock(folder: Path) -> Iterator[bool]:
    """Lock the folder for the block; yield whether that succeeded.

    It fails if another process holds the lock, if the folder is gone or belongs to another user, and on a file system
    without locks for folders, such as NFS.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield has_name(descriptor, folder)
    finally:
        os.close(descriptor)


def has_name(descriptor: int, path: Path) -> bool:
    """Return whether the path still names the folder that the descriptor has open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _make_locked(parent: Path) -> LockedFolder:
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=parent))
        except OSError as error:
            error.filename = str(parent)  # the user knows the parent, not the temporary name
            raise
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process removed it before it was locked
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            return LockedFolder(path, descriptor)  # without locks, no process removes the folders of others
        if has_name(descriptor, path):
            return LockedFolder(path, descriptor)
        os.close(descriptor)
