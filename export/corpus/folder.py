"""The files of a folder that is one corpus, its skipped entries, and files that change while they are read."""

import errno
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from export.corpus.corpus import CorpusError, Skipped, corpus_error
from function.engine.bundle import MANIFEST, MODEL, TOKENIZER

SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"
HIDDEN = "the name begins with a dot or an underscore"  # Spark and Hive skip these too, such as _SUCCESS
REPEATED = "a link leads to what is read already"
SPECIAL = "neither a file nor a folder"
BUNDLE = "a bundle, which an export has made"


def find_files(folder: Path) -> tuple[list[Path], tuple[Skipped, ...]]:
    """Return the files of a folder and of its folders in the order of their paths, and the skipped entries by reason.

    Symbolic links are followed. A file or folder with several paths is read once, under the path without a link if
    there is one, so a link to a folder above it is no endless loop.
    Raises CorpusError if the folder is a bundle, if a link leads nowhere or if there is no file, OSError if a folder
    cannot be read.
    """
    files: list[Path] = []
    skipped: dict[str, list[Path]] = {}
    seen: set[Path] = set()
    folders, links = deque[tuple[Path, Path]](), deque[Path]()

    def take(path: Path, real: Path) -> None:
        if real in seen:
            skipped.setdefault(REPEATED, []).append(path)
            return
        seen.add(real)
        mode = path.stat().st_mode
        if S_ISDIR(mode) and _is_bundle(path):
            skipped.setdefault(BUNDLE, []).append(path)
        elif S_ISDIR(mode):
            folders.append((path, real))
        elif S_ISREG(mode):
            files.append(path)
        else:
            skipped.setdefault(SPECIAL, []).append(path)

    if _is_bundle(folder):
        remedy = (
            f"name the texts that it was made of; --update {folder}, or `export corpus --out {folder}`, keeps its model"
        )
        raise corpus_error(folder, None, "a bundle", "a folder of texts", remedy)
    take(folder, folder.resolve())
    while folders or links:
        if not folders:  # links come last, so that each file is read under its own path
            link = links.popleft()
            take(link, _target(link))
            continue
        here, real_folder = folders.popleft()
        for path in sorted(here.iterdir()):
            if path.name[0] in "._":
                skipped.setdefault(HIDDEN, []).append(path)
            elif path.is_symlink():
                links.append(path)
            else:
                take(path, real_folder / path.name)
    described = tuple(
        Skipped(reason, len(paths), as_text(str(min(paths).relative_to(folder))))
        for reason, paths in sorted(skipped.items())
    )
    if not files:
        found = "; ".join(["a folder without files", *map(str, described)])
        raise corpus_error(folder, None, found, f"files ending in {SUFFIXES}", "check the path")
    return sorted(files), described


def as_text(name: str) -> str:
    r"""Return the name of a file as valid Unicode: a byte that is not UTF-8 is written as \xe9, as Python does."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _is_bundle(folder: Path) -> bool:
    """Return whether an export has made this folder. Other programs write a manifest.json too."""
    return all((folder / name).is_file() for name in (MANIFEST, MODEL, TOKENIZER))


def _target(link: Path) -> Path:
    """Return the absolute path that a link leads to. Raises CorpusError if there is nothing."""
    try:
        return Path(os.path.realpath(link, strict=True))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        found = f"a link to {str(link.readlink())!r}, which leads nowhere"
        remedy = "repair the link, or remove it"
        raise corpus_error(link, None, found, "a link to a file or a folder", remedy) from error


@contextmanager
def refusing_changes(path: Path) -> Iterator[None]:
    """Raise CorpusError if the file was written, replaced or removed during the block.

    Its rows would be half old and half new. A CorpusError of the block becomes that error's cause.
    """
    before, error = _state(path), None
    try:
        yield
    except CorpusError as raised:
        error = raised
    if (after := _state(path)) == before:
        if error is not None:
            raise error
        return
    bytes_before, bytes_after = (0 if state is None else state[1] for state in (before, after))
    found = "no file any more" if after is None else f"another file of {bytes_after:,} bytes than at the start"
    remedy = "run the command again when nothing writes the file, or copy it first"
    expected = f"the same {bytes_before:,} bytes until all rows are read"
    raise corpus_error(path, None, found, expected, remedy) from error


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return the file's inode, length and time of change; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
