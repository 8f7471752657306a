"""Folders for unfinished files. A folder is locked while its process runs; one without a lock is abandoned.

The system releases the lock of a killed process. A process id instead of a lock would fail, because ids are reused and
processes in several containers can have the same id.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFIX, SUFFIX = ".semantic-search-", ".partial"
NAME = re.compile(re.escape(PREFIX) + r"\w+" + re.escape(SUFFIX))


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A folder and the open descriptor that holds its lock."""

    path: Path
    descriptor: int


@contextmanager
def unfinished_folder(parent: Path) -> Iterator[LockedFolder]:
    """Yield a new, empty and locked folder in `parent`, and remove it at the end unless it was renamed."""
    folder = _make_locked(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
        os.close(folder.descriptor)


def remove_abandoned(parent: Path) -> None:
    """Remove the unfinished folders of processes that were killed; ignore those that cannot be removed."""
    for path in parent.iterdir():
        if NAME.fullmatch(path.name):
            with trying_lock(path) as is_abandoned:
                if is_abandoned:
                    shutil.rmtree(path, ignore_errors=True)


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
