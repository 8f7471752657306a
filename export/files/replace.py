"""Replace all files of a bundle's folder, or none of them.

An export writes into the folder `.partial` inside the bundle's folder, which it locks. The system releases the lock of
a killed process, and the next export into the folder continues with the finished pieces (resume.py).

When the disk has stored all new files, the marker `.partial/complete` is written, and the files move into the bundle's
folder one by one. The old manifest.json is removed first and the new one moves last, so a half-replaced bundle never
opens. If an export is killed while files move, the next export moves the rest.

The bundle's folder itself is never renamed. It can be a mount point or a shell's current folder, its parent can be
read-only, and a container that mounted it sees the new files.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from export.files.disk_errors import OTHER_FOLDER, explaining_disk
from export.files.resume import FINISHED, PARTIAL, find_kept, flush, flush_one
from function.engine import bundle as layout
from function.engine.bundle import BundleError

BUNDLE_FILES = {
    *(layout.MANIFEST, layout.MODEL, layout.TOKENIZER, layout.INDEX),
    *(layout.PASSAGES, layout.COLUMNS, layout.KEYWORDS, layout.TRUNCATED),
    *(layout.RERANK, layout.RERANK_TOKENIZER),
}
LOCK = "lock"
COMPLETE = "complete"  # the marker in PARTIAL: all files are stored and only have to move
LOST_AND_FOUND = "lost+found"  # in the root of each ext4 file system


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a folder whose files replace those in `out` when the block ends without an error.

    The folder is empty except for the finished pieces of a stopped export. After an error or an interruption of the
    block, the old bundle is unchanged, and finished pieces stay for the next export.
    Raises BundleError if `out` is a file, if it holds anything but a bundle, if another export writes into it, or if
    the process is stopped while files move; DiskError if the disk is full; another OSError, with the path, if `out`
    cannot be written.
    """
    out = _resolve(out)
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        _prepare(out, is_new=bool(made))
        with _locking(out) as partial, explaining_disk(out, OTHER_FOLDER):
            _finish_move(partial, out)
            _check_model(out)
            _empty(partial)
            try:
                yield partial
                flush(partial)
                (partial / COMPLETE).touch()
                flush_one(partial)
                _finish_move(partial, out)
            except BaseException:  # raised again
                if not (partial / COMPLETE).exists():
                    _empty(partial)
                raise
    except BaseException:  # also Ctrl-C and SIGTERM; always raised again
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def _resolve(out: Path) -> Path:
    """Return the absolute path without links. Raises BundleError if the links form a loop or the path is a file."""
    try:
        resolved = out.resolve()
    except RuntimeError as error:
        raise BundleError(f"{out}: is a loop of symbolic links; expected a folder; {OTHER_FOLDER}") from error
    except FileNotFoundError as error:
        raise BundleError(f"{out}: the current folder was deleted; expected one that exists; cd to another") from error
    if not resolved.name:
        raise BundleError(f"{out}: is the root of all folders; expected a folder of its own for the bundle")
    if resolved.exists() and not resolved.is_dir():
        raise BundleError(f"{out}: is a file; expected a folder to write the bundle into; {OTHER_FOLDER}")
    return resolved


def _prepare(out: Path, is_new: bool) -> None:
    """Create the folder if it is new, and otherwise refuse a folder with other files than a bundle's."""
    out.mkdir(parents=True, exist_ok=True)
    if is_new:
        out.chmod(0o755)  # with any umask, because a container has another user
    for path in sorted(out.iterdir()):
        is_of_bundle = path.name in BUNDLE_FILES and path.is_file()
        is_of_file_system = path.name == LOST_AND_FOUND and out.is_mount()
        if not (is_of_bundle or is_of_file_system or path.name == PARTIAL):
            raise BundleError(f"{out}: holds {path.name}, so it is not a bundle; choose an empty or new folder")


def _check_model(out: Path) -> None:
    names = sorted(path.name for path in out.iterdir() if path.name in BUNDLE_FILES)
    if names and layout.MODEL not in names:
        raise BundleError(f"{out}: holds {names[0]} and no {layout.MODEL}, so it is not a bundle; empty it yourself")


@contextmanager
def _locking(out: Path) -> Iterator[Path]:
    """Yield the folder PARTIAL of `out`, locked. At the end, remove it unless it holds finished pieces or has to move.

    Raises BundleError if another export holds the lock.
    """
    partial = out / PARTIAL
    with ExitStack() as opened:
        try:
            partial.mkdir(exist_ok=True)
            descriptor = os.open(partial / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = os.path.samestat(os.fstat(descriptor), (partial / LOCK).stat())
        except (BlockingIOError, FileNotFoundError):  # FileNotFoundError: the other export has just removed the file
            is_locked = False
        except OSError as error:  # also a network file system without locks
            error.filename = str(out)  # the folder that the user named
            raise
        if not is_locked:
            raise BundleError(
                f"{out}: another export is writing into this folder; expected to be the only one; wait until it ends, "
                f"or {OTHER_FOLDER}"
            )
        try:
            yield partial
        finally:
            if find_kept(out) is None and not (partial / COMPLETE).exists():
                shutil.rmtree(partial, ignore_errors=True)  # the next export removes what stays


def _empty(partial: Path) -> None:
    """Remove everything from the folder except its lock and the finished pieces."""
    for path in partial.iterdir():
        if path.name in (LOCK, FINISHED):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _finish_move(partial: Path, out: Path) -> None:
    """Move the files that a complete export has not moved yet, if there is one.

    Raises BundleError if it is stopped when some files have moved and others have not. The next export moves the rest.
    """
    if not (partial / COMPLETE).exists():
        return
    try:
        if (partial / layout.MANIFEST).exists():
            _move_files(partial, out)
        shutil.rmtree(partial / FINISHED, ignore_errors=True)  # first, so that a stop here leaves nothing to reuse
        (partial / COMPLETE).unlink()
    except (OSError, KeyboardInterrupt, SystemExit) as error:
        if (out / layout.MANIFEST).exists():  # nothing has moved yet, or everything has
            (partial / COMPLETE).unlink(missing_ok=True)
            raise
        reason = error if isinstance(error, OSError) else "interrupted"
        raise BundleError(
            f"{out}: stopped while the new files moved into it ({reason}), so the bundle does not open now; "
            f"expected all files to move; run `python -m export --out {out}` again, which moves the rest first"
        ) from error


def _move_files(partial: Path, out: Path) -> None:
    listed = layout.read_manifest(partial).files.keys()
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
