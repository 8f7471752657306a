"""Refuse a file that changes while it is read, since its rows would be half old and half new."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.corpus.corpus import CorpusError, corpus_error


@contextmanager
def refusing_changes(path: Path) -> Iterator[None]:
    """Raise CorpusError if the file was written, replaced or removed during the block.

    Whatever a changed file lets the block complain of is the error's cause.
    """
    before = _state(path)
    try:
        yield
    except CorpusError as error:
        if _state(path) != before:
            raise _changed(path, before) from error
        raise
    if _state(path) != before:
        raise _changed(path, before)


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return the file's number, length and time of change; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _changed(path: Path, before: tuple[int, int, int] | None) -> CorpusError:
    after = _state(path)
    bytes_before, bytes_after = (0 if state is None else state[1] for state in (before, after))
    found = "no file any more" if after is None else f"another file of {bytes_after:,} bytes than at the start"
    remedy = "run the command again when nothing writes the file, or copy it first"
    return corpus_error(path, None, found, f"the same {bytes_before:,} bytes until all rows are read", remedy)
