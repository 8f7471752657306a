"""A full or failing disk is reported as what it is, not as a fault of the model that is being exported."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.model_files import ModelError

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


def find_disk_error(error: BaseException | None) -> OSError | None:
    """Return the error of the disk that caused an error, or None if there is none in its chain."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            return error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


@contextmanager
def name_disk_errors(place: Path, remedy: str) -> Iterator[None]:
    """Raise ModelError for an error of the disk in the block, naming the file, or `place` where none is known."""
    try:
        yield
    except Exception as error:
        found = find_disk_error(error)
        if found is None or isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{found.filename or place}: {found.strerror}; expected a folder that can be written, on a disk with room; "
            f"{remedy}"
        ) from error


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder for intermediate files and remove it afterwards.

    Raises ModelError, which names the folder, if it cannot be made or if the disk fails in the block.
    """
    remedy = "free some space, or set TMPDIR to a folder on another disk"
    try:
        place = tempfile.gettempdir()
    except FileNotFoundError as error:
        raise ModelError(f"TMPDIR: {error.strerror}; expected a folder for temporary files; {remedy}") from error
    with name_disk_errors(Path(place), remedy), tempfile.TemporaryDirectory() as name:
        yield Path(name)
