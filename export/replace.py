"""Replace all files of a bundle's folder, or none of them.

The export writes new files into a hidden folder inside the bundle's folder, `.semantic-search-….partial`. When the disk
has stored all of them, the hidden folder is renamed to `.semantic-search.whole`, and its files move into the bundle's
folder one by one. The old manifest.json is removed first and the new one moves last, so that a half-replaced bundle
never opens. If an export is killed while files move, the next export moves the rest. If it is stopped earlier, the next
export takes over what is finished (export/finished.py) and removes the other files.

The bundle's folder itself is never renamed. It may be a mount point or a shell's current folder, its parent may be
read-only, and a container that mounted it sees the new files.

All exports into a folder use the same name, `.semantic-search.whole`, so simultaneous exports wait for each other.
"""

import errno
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export import locked_folder
from export.disk_errors import OTHER_FOLDER, explaining_disk
from export.finished import flush, flush_one
from export.locked_folder import FINISHED, LockedFolder, has_name, remove_abandoned, trying_lock, unfinished_folder
from function.engine import bundle as layout
from function.engine.bundle import BundleError

BUNDLE_FILES = {
    *(layout.MANIFEST, layout.MODEL, layout.TOKENIZER, layout.INDEX),
    *(layout.PASSAGES, layout.COLUMNS, layout.KEYWORDS, layout.TRUNCATED),
}
WHOLE = ".semantic-search.whole"
LOST_AND_FOUND = "lost+found"  # in the root of each ext4 file system
LONGEST_TURN = 60.0  # seconds; moving its files takes milliseconds
PAUSE = 0.05  # seconds between two looks at another export's turn


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a folder whose files take the place of those in `out` when the block ends without an error.

    It is empty but for what an export that was stopped has finished. After an error or an interruption of the block,
    the old bundle is unchanged, and what is finished stays for the next export.
    Raises BundleError if `out` is a file, if it holds anything but a bundle, or if the process is stopped while files
    move; DiskError if the disk is full; another OSError, which names the path, if nothing can be written there.
    """
    out = _resolve(out)
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        _prepare(out, is_new=bool(made))
        with unfinished_folder(out) as fresh, explaining_disk(out, OTHER_FOLDER):
            remove_abandoned(out, heir=fresh.path)
            yield fresh.path
            flush(fresh.path)
            _put_in_place(fresh, out)
    except BaseException:  # Ctrl-C and SIGTERM too; always raised again
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
    """Make the folder if it is new; otherwise refuse foreign files in it, and end what a killed export was moving."""
    out.mkdir(parents=True, exist_ok=True)
    if is_new:
        out.chmod(0o755)  # whatever the umask, because a container has another user
    _refuse_other_contents(out)
    repair(out)
    names = sorted(path.name for path in out.iterdir() if path.name in BUNDLE_FILES)
    if names and layout.MODEL not in names:
        raise BundleError(f"{out}: holds {names[0]} and no {layout.MODEL}, so it is not a bundle; empty it yourself")


def _refuse_other_contents(out: Path) -> None:
    for path in sorted(out.iterdir()):
        is_of_bundle = path.name in BUNDLE_FILES and path.is_file()
        is_of_export = path.name == WHOLE or locked_folder.NAME.fullmatch(path.name) is not None
        is_of_file_system = path.name == LOST_AND_FOUND and out.is_mount()
        if not (is_of_bundle or is_of_export or is_of_file_system):
            raise BundleError(f"{out}: holds {path.name}, so it is not a bundle; choose an empty or new folder")


def repair(out: Path) -> None:
    """Move the rest of the files if an export was killed while they moved into `out`; wait for a running export.

    Raises BundleError if another export moves files for longer than LONGEST_TURN, or as _move_files does.
    """
    whole = out / WHOLE
    end = time.monotonic() + LONGEST_TURN
    while whole.exists():
        with trying_lock(whole) as is_abandoned:
            if is_abandoned:
                _move_files(whole, out)
        if not whole.exists():
            break
        if time.monotonic() > end:
            raise BundleError(
                f"{whole}: holds files that another export has been moving for {LONGEST_TURN:.0f} s; expected it to "
                "end; if none is running, move them to the folder above, manifest.json last, and delete this one"
            )
        time.sleep(PAUSE)


def _put_in_place(fresh: LockedFolder, out: Path) -> None:
    """Move the files of a flushed folder into `out` when no other export moves any. Raises as _move_files does."""
    whole = _take_turn(fresh.path, out)
    try:
        _move_files(whole, out)
    except (OSError, KeyboardInterrupt, SystemExit):
        if has_name(fresh.descriptor, whole):
            whole.rename(fresh.path)  # nothing has moved yet, or all has
        raise


def _take_turn(fresh: Path, out: Path) -> Path:
    """Rename the folder to WHOLE as soon as no other export's folder has that name; return the new path."""
    while True:
        repair(out)
        try:
            return fresh.rename(out / WHOLE)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _move_files(whole: Path, out: Path) -> None:
    """Replace the bundle's files by those in `whole`, or the rest of them if an earlier export was stopped.

    Raises BundleError if it is stopped when some files have moved and others have not. The next export moves the rest.
    """
    try:
        _move_each_file(whole, out)
    except (OSError, KeyboardInterrupt, SystemExit) as error:
        if (whole / layout.MANIFEST).exists() and not (out / layout.MANIFEST).exists():
            reason = error if isinstance(error, OSError) else "interrupted"
            raise BundleError(
                f"{out}: stopped while the new files moved into it ({reason}), so the bundle does not open now; "
                f"expected all files to move; run `python -m export --out {out}` again, which moves the rest first"
            ) from error
        raise
    shutil.rmtree(whole / FINISHED, ignore_errors=True)
    try:
        whole.rmdir()
    except OSError as error:  # another export has begun its turn already, or ended it
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def _move_each_file(whole: Path, out: Path) -> None:
    if not (whole / layout.MANIFEST).exists():
        return
    listed = layout.read_manifest(whole).files.keys()
    (out / layout.MANIFEST).unlink(missing_ok=True)
    flush_one(out)  # before anything else moves, since a bundle without manifest never opens
    for name in sorted(BUNDLE_FILES - {layout.MANIFEST}):
        if name not in listed:
            (out / name).unlink(missing_ok=True)
        elif (whole / name).exists():
            (whole / name).replace(out / name)
    flush_one(out)
    (whole / layout.MANIFEST).replace(out / layout.MANIFEST)
    flush_one(out)
