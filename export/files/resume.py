"""Finished pieces of an export, kept so that the next export continues where a stopped one was.

A piece is a file or a folder. It is written beside its final place, flushed to the disk and renamed. So every piece in
the folder `finished` is complete, even if the process is killed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARTIAL = ".partial"  # in the bundle's folder: everything that an unfinished export has written
FINISHED = "finished"  # in PARTIAL: the pieces that the next export reuses


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
    """Return the folder with the finished pieces of a stopped export into `out`, None if it left none."""
    finished = out / PARTIAL / FINISHED
    return finished.parent if finished.is_dir() and any(finished.iterdir()) else None


def flush(folder: Path) -> None:
    """Wait until the disk has stored the folder and each file in it. Raises OSError with the path."""
    for path in [*folder.iterdir(), folder]:
        if path.name != FINISHED:  # the pieces are flushed already
            flush_one(path)


def flush_one(path: Path) -> None:
    """Wait until the disk has stored a file, or a folder's list of files. Raises OSError with the path."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)
