"""The files of a folder that is one corpus, its skipped entries, and files that change while they are read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from semsearch.engine.bundle import is_bundle
from semsearch.indexing.corpus.corpus import CorpusError, corpus_error
from semsearch.indexing.corpus.report import Skipped
from semsearch.indexing.walking import LINKED_OUT, WalkRules, as_text, walk

SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"


def find_files(
    folder: Path, rules: WalkRules, unread: dict[str, OSError] | None = None
) -> tuple[list[str], tuple[Skipped, ...]]:
    """Return the files of a folder and of its folders in the order of their paths, and the skipped entries by reason.

    The paths are strings, because a folder can have 100,000 files. A file is returned as it is. The rules say which
    entries are not read.
    Raises CorpusError if the folder is a bundle, OSError if a folder cannot be read or a link leads nowhere. With
    `unread`, such an entry of the folder is added there with its error instead.
    """
    if not folder.is_dir():
        return [str(folder)], ()
    if is_bundle(folder):
        name = quote(str(folder))
        remedy = f"name the texts that it was made of; --update {name}, or --out {name}, keeps its model"
        raise corpus_error(folder, None, "a bundle", "a folder of texts", remedy)
    skipped: dict[str, list[str]] = {}

    def fail(path: str, error: OSError) -> None:
        named = _named(error, Path(path))
        if unread is None or path == str(folder):
            raise named from error
        unread[path] = named

    walked = walk(folder, rules, skip=lambda reason, path: skipped.setdefault(reason, []).append(path), fail=fail)
    files = sorted(walked, key=path_order)
    described = tuple(
        Skipped(reason, len(paths), as_text(relative_path(min(paths, key=path_order), folder)))
        for reason, paths in sorted(skipped.items())
    )
    return files, described


def no_files(folder: Path, skipped: Sequence[Skipped], expected: str = f"files ending in {SUFFIXES}") -> CorpusError:
    """Return the error for a folder in which `find_files` has found no file; expected is what the caller reads."""
    found = "; ".join(["a folder without files", *map(str, skipped)])
    remedy = "check the path"
    if any(each.reason == LINKED_OUT for each in skipped):
        remedy += ", or follow such links with --follow-symlinks"
    return corpus_error(folder, None, found, expected, remedy)


def path_order(path: str) -> list[str]:
    """Return the key by which paths are sorted: what is in a folder is together."""
    return path.split("/")


def relative_path(path: str, folder: Path) -> str:
    """Return the path of what `find_files` has found in a folder, from that folder on."""
    return path[len(str(folder)) :].lstrip("/")


def _named(error: OSError, path: Path) -> OSError:
    """Return the error of an entry of a folder with its own path: that of a link names only what the link leads to."""
    reason = error.strerror
    if path.is_symlink():
        reason = f"a link to {path.readlink()}: {reason}"
    return OSError(error.errno, reason, str(path))


class ChangedFileError(CorpusError):
    """A file was written or replaced while it was read."""


@contextmanager
def refusing_changes(path: Path) -> Iterator[None]:
    """Raise ChangedFileError if the file was written or replaced in the block: its rows would be half old, half new.

    A CorpusError of the block becomes that error's cause.
    """
    before, error = _state(path), None
    try:
        yield
    except CorpusError as raised:
        error = raised
    if _state(path) != before:
        remedy = "run the command again when nothing writes the file, or copy it first"
        found = "found another file than at the start, expected the same until it is read"
        raise ChangedFileError(f"{path}: {found}; {remedy}") from error
    if error is not None:
        raise error


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
