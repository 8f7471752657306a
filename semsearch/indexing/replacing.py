"""Replace all files of a bundle's folder, or none of them, and keep the finished pieces of a stopped run.

`index` writes into the folder `.partial` inside the bundle's folder, which it locks. The system releases the lock of
a killed process, and the next run into the folder reuses the finished pieces, such as shards. A piece is written
beside its final place, flushed to the disk and renamed, so every piece in `.partial/finished` is complete.

When the disk has stored all new files, the marker `.partial/complete` is written, and the files move into the bundle's
folder one by one. The old manifest.json is removed first and the new one moves last, so a half-replaced bundle never
opens. If a run is stopped while files move, the next run moves the rest.

The bundle's folder itself is never renamed. It can be a mount point or a shell's current folder, its parent can be
read-only, and a container that mounted it sees the new files.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from semsearch.engine import bundle as layout
from semsearch.engine.bundle import BundleError

BUNDLE_FILES = {
    *(layout.MANIFEST, layout.MODEL, layout.TOKENIZER, layout.INDEX),
    *(layout.PASSAGES, layout.COLUMNS, layout.KEYWORDS, layout.TRUNCATED),
    *(layout.QUERY_TABLE, layout.RERANK, layout.RERANK_TOKENIZER, layout.SOURCE, layout.UPDATE),
}
PARTIAL = ".partial"  # in the bundle's folder: everything that an unfinished run has written
FINISHED = "finished"  # in PARTIAL: the pieces that the next run reuses
LOCK_FILE = "lock"
COMPLETE = "complete"  # the marker in PARTIAL: all files are stored and only have to move
LOST_AND_FOUND = "lost+found"  # in the root of each ext4 file system
SECONDS_BETWEEN_LOCKINGS = 0.2  # while another process writes

Made = TypeVar("Made")


class BusyError(BundleError):
    """Another process writes into the folder of a bundle."""


def when_free(attempt: Callable[[], Made], seconds: float, on_busy: Callable[[], None]) -> Made:
    """Return what `attempt` returns. Try it again while another process writes into its bundle, for these seconds.

    on_busy is called before each pause. Raises BusyError when the time is over, and whatever else `attempt` raises.
    """
    end = monotonic() + seconds
    while True:
        try:
            return attempt()
        except BusyError as error:
            left = end - monotonic()
            if not seconds:
                raise
            if left <= 0:
                raise BusyError(f"{error}; waited {seconds:g} seconds for it") from error
        on_busy()
        sleep(min(left, SECONDS_BETWEEN_LOCKINGS))


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a folder whose files replace those in `out` when the block ends without an error.

    The folder is empty except for the finished pieces of a stopped run. After an error or an interruption of the
    block, the old bundle is unchanged, and finished pieces stay for the next run.
    Raises BusyError if another command writes into `out`, BundleError if it holds anything but a bundle, and OSError if
    it cannot be written.
    """
    out = out.resolve()  # the block can change the current folder
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    if is_new:
        out.chmod(0o755)  # with any umask, because a container has another user
    _check_is_bundle(out)
    with _locking(out) as partial:
        _finish_move(partial, out)
        _empty(partial)
        try:
            yield partial
            if not (partial / layout.MANIFEST).exists():  # the block has made no bundle
                _empty(partial)
                return
            flush(partial)
            (partial / COMPLETE).touch()
            flush_one(partial)
        except BaseException:  # also Ctrl-C and SIGTERM; raised again
            _empty(partial)
            raise
        _finish_move(partial, out)


def finish_stopped(out: Path) -> None:
    """Move the files of a run into `out` that was stopped while it moved them: without them there is no bundle.

    Raises BusyError if another command writes into `out`.
    """
    if (out / PARTIAL / COMPLETE).exists():
        with _locking(out) as partial:
            _finish_move(partial, out)


def require_free(out: Path) -> None:
    """Raise BusyError if another process writes into `out`."""
    if (out / PARTIAL / LOCK_FILE).exists():
        with locking(out / PARTIAL / LOCK_FILE, out):
            pass


@contextmanager
def finishing(fresh: Path, name: str) -> Iterator[Path]:
    """Yield a path in the folder `fresh` for a new piece; if no error is raised, keep the piece under this name."""
    path = fresh / f"{name}.unfinished"
    yield path
    if path.is_dir():
        flush(path)
    else:
        flush_one(path)
    (fresh / FINISHED).mkdir(exist_ok=True)
    path.rename(fresh / FINISHED / name)
    flush_one(fresh / FINISHED)


def find_kept(out: Path) -> Path | None:
    """Return the folder with the finished pieces of a stopped run into `out`, None if it left none."""
    if any((out / PARTIAL / FINISHED).glob("*")):
        return out / PARTIAL
    return None


def flush(folder: Path) -> None:
    """Wait until the disk has stored the folder and each file in it, except finished pieces, which are flushed."""
    for path in [*folder.iterdir(), folder]:
        if path.name != FINISHED:
            flush_one(path)


def flush_one(path: Path) -> None:
    """Wait until the disk has stored a file, or a folder's list of files."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not _flush_drive(descriptor):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_drive(descriptor: int) -> bool:
    """Flush a file as macOS does it, and return whether that was done.

    There, fsync leaves the file in the cache of the drive, which writes in any order (its page fsync(2)). So after a
    loss of power, a new manifest could be there without the files that it lists.
    """
    if not hasattr(fcntl, "F_FULLFSYNC"):
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    except OSError:  # a network drive does not have it
        return False
    return True


def _check_is_bundle(out: Path) -> None:
    names = {path.name for path in out.iterdir()} - {PARTIAL, LOST_AND_FOUND}
    if others := sorted(names - BUNDLE_FILES):
        raise BundleError(f"{out}: holds {others[0]}, so it is not a bundle; choose an empty or new folder")
    is_known = bool(names & {layout.MODEL, layout.INDEX}) or layout.find_corpus(out) is not None
    if names and not is_known and not (out / PARTIAL / COMPLETE).exists():
        found = f"holds {min(names)}, and neither {layout.MODEL} nor {layout.INDEX}"
        raise BundleError(f"{out}: {found}, so it is not a bundle; empty it yourself")


@contextmanager
def locking(file: Path, out: Path) -> Iterator[None]:
    """Hold the lock of a file that says who writes into `out`. The file is made if it is not there.

    Raises BusyError if another process holds it.
    """
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = os.path.samestat(os.fstat(lock.fileno()), file.stat())
        except (BlockingIOError, FileNotFoundError):  # FileNotFoundError: the other run has just removed the file
            is_locked = False
        if not is_locked:
            raise BusyError(f"{out}: another command writes into it, expected none; wait, or name another --out")
        yield


@contextmanager
def _locking(out: Path) -> Iterator[Path]:
    """Yield the folder PARTIAL of `out`, locked. At the end, remove it unless it holds finished pieces or has to move.

    Raises BusyError if another run holds the lock.
    """
    partial = out / PARTIAL
    partial.mkdir(exist_ok=True)
    with locking(partial / LOCK_FILE, out):
        try:
            yield partial
        finally:
            if find_kept(out) is None and not (partial / COMPLETE).exists():
                shutil.rmtree(partial, ignore_errors=True)  # the next run removes what stays


def _empty(partial: Path) -> None:
    for path in partial.iterdir():
        if path.name not in (LOCK_FILE, FINISHED):
            delete(path)


def delete(path: Path) -> None:
    """Delete a folder, or a file if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _finish_move(partial: Path, out: Path) -> None:
    if not (partial / COMPLETE).exists():
        return
    if (partial / layout.MANIFEST).exists():
        listed = {*layout.read_manifest(partial).files, layout.SOURCE, layout.UPDATE}
        (out / layout.MANIFEST).unlink(missing_ok=True)
        flush_one(out)  # before anything else moves, since a bundle without manifest never opens
        for name in sorted(BUNDLE_FILES - {layout.MANIFEST}):
            if name not in listed:
                (out / name).unlink(missing_ok=True)
            elif (partial / name).exists():
                (partial / name).replace(out / name)
        flush_one(out)
        (partial / layout.MANIFEST).replace(out / layout.MANIFEST)
        flush_one(out)
    shutil.rmtree(partial / FINISHED, ignore_errors=True)  # first, so that a stop here leaves nothing to reuse
    (partial / COMPLETE).unlink()
