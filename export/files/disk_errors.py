"""Errors of the disk in one line: which folder, what happened, what was expected and what to do.

Libraries report a full disk in several ways. Python raises an OSError without a path; safetensors and torch raise
errors that quote the system's message; ONNX Runtime raises an error without a reason.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
DISK_ERRORS = (*FULL, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
SPENT = 1_000_000  # bytes; a disk with less free space counts as full, because file systems reserve some
QUOTED = re.compile(r"\(os error (\d+)\)")  # an errno in the errors of libraries written in Rust
OTHER_FOLDER = "choose another folder with --out"

_PERMISSION = "expected a place that this user may read and write; change its permissions or choose another place"
_SPACE = "expected free space; delete what you no longer need there or choose another place"
EXPECTED = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EROFS: "expected a file system that can be written; choose a place on another one",
    errno.EIO: "expected a disk that works; check it or choose a place on another one",
}
EXPECTED_OTHERWISE = "expected a place that can be read and written; check the path or choose another place"


class DiskError(OSError):
    """An error of the disk whose message has all four parts."""


def explain(error: OSError) -> str:
    """Return one line that says where the error happened, what it is, what was expected and what to do."""
    if isinstance(error, DiskError):
        return str(error)
    where = error.filename
    found = error.strerror or next(iter(str(error).splitlines()), type(error).__name__)
    expected = EXPECTED.get(error.errno or 0, EXPECTED_OTHERWISE)
    return f"{where}: {found}; {expected}" if where else f"{found}; {expected}"


def in_words(size: int) -> str:
    """Return a number of bytes as messages show it: 12,345.6 MB or 34.5 kB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1_000_000 else f"{size / 1e3:,.1f} kB"


@contextmanager
def explaining_disk(folder: Path, remedy: str) -> Iterator[None]:
    """Raise DiskError for any error of the block that means that the folder's disk is full.

    A library's error that quotes another error of the system becomes a DiskError too. An OSError without a path gets
    the folder's path. All other errors are raised unchanged.
    """
    try:
        yield
    except DiskError:
        raise
    except Exception as error:
        free = shutil.disk_usage(folder).free
        cause = _find_os_error(error)
        if cause is None and free < SPENT and not isinstance(error, ValueError):  # ValueErrors are the export's own
            cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if cause is not None and cause.filename is None:
            cause.filename = str(folder)
        if cause is not None and cause.errno in FULL and Path(str(cause.filename)).is_relative_to(folder):
            raise DiskError(
                f"{folder}: {cause.strerror}, {in_words(free)} are free; expected room for all files; delete what you "
                f"no longer need there or {remedy}"
            ) from error
        if cause is not None and not isinstance(error, OSError | ValueError):
            raise DiskError(explain(cause)) from error
        raise


def find_disk_error(error: BaseException) -> OSError | None:
    """Return the disk's error that `error` is, is caused by or quotes, or else None."""
    cause = _find_os_error(error)
    return cause if cause is not None and cause.errno in DISK_ERRORS else None


def _find_os_error(error: BaseException) -> OSError | None:
    """Return the OSError with an errno that `error` is, is caused by or quotes, or else None."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, OSError) and link.errno is not None:
            return link
        codes = [int(code) for code in QUOTED.findall(str(link))]
        codes += [code for code in FULL if os.strerror(code) in str(link)]
        if codes:
            return OSError(codes[0], os.strerror(codes[0]))
        link = link.__cause__
    return None
