"""Pieces of an export that outlive it, so that an export that was stopped goes on where it was.

A piece is a file or a folder. It is written beside its later place, flushed to the disk and renamed. Every piece
in the folder `finished` is therefore complete, even if the process is killed. locked_folder.py decides which export
takes the pieces over.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.files.locked_folder import FINISHED


@contextmanager
def finishing(fresh: Path, name: str) -> Iterator[Path]:
    """Yield a path in the unfinished folder `fresh` for a new piece; if no error is raised, keep it under the name."""
    path = fresh / f"{name}.unfinished"
    yield path
    if path.is_dir():
        flush(path)
    else:
        flush_one(path)
    (fresh / FINISHED).mkdir(exist_ok=True)
    path.rename(fresh / FINISHED / name)
    flush_one(fresh / FINISHED)


def flush(folder: Path) -> None:
    """Wait until the disk has stored the folder and each file in it. Raises OSError with the path."""
    for path in [*folder.iterdir(), folder]:
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
