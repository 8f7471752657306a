"""The files of a folder that is one corpus, its skipped entries, and files that change while they are read."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import normalize

from semsearch.engine.bundle import is_bundle
from semsearch.indexing.corpus.corpus import CorpusError, Skipped, corpus_error
from semsearch.walking import LINKED_OUT, WalkRules

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"
REPEATED = "a link leads to what is read already"
SPECIAL = "neither a file nor a folder"
BUNDLE = "a bundle"
STATIC_SITE = "a site that searches in the browser"


def find_files(
    folder: Path,
    rules: WalkRules,
    expected: str = f"files ending in {SUFFIXES}",
    unread: dict[Path, OSError] | None = None,
) -> tuple[list[Path], tuple[Skipped, ...]]:
    """Return the files of a folder and of its folders in the order of their paths, and the skipped entries by reason.

    A file is returned as it is. The rules say which entries are not read. expected is what the caller reads.
    Symbolic links are followed, those that lead out of the folder only if the rules say so. A file or folder with
    several paths is read once, under the path without a link if there is one, so a link to a folder above it is no
    endless loop.
    Raises CorpusError if the folder is a bundle or if there is no file, OSError if a folder cannot be read or a link
    leads nowhere. With `unread`, such an entry of the folder is added there with its error instead.
    """
    if not folder.is_dir():
        return [folder], ()
    if is_bundle(folder):
        remedy = f"name the texts that it was made of; --update {folder}, or --out {folder}, keeps its model"
        raise corpus_error(folder, None, "a bundle", "a folder of texts", remedy)
    files: list[Path] = []
    skipped: dict[str, list[Path]] = {}
    seen: set[str] = set()
    waiting, links = [folder], deque[Path]()
    while waiting or links:
        path = waiting.pop() if waiting else links.popleft()  # links come last: each file is read under its own path
        try:
            real = os.path.realpath(path, strict=True)
            is_folder = path.is_dir()
            children = sorted(path.iterdir()) if is_folder else []
            folders = [child.name for child in children if child.is_dir()]
        except OSError as error:
            named = _named(error, path)
            if unread is None or path == folder:
                raise named from error
            unread[path] = named
            continue
        if real in seen:
            skipped.setdefault(REPEATED, []).append(path)
        elif is_bundle(path):
            skipped.setdefault(BUNDLE, []).append(path)
        elif _is_site(path) and path != folder:
            skipped.setdefault(STATIC_SITE, []).append(path)
        elif is_folder:
            others = sorted({child.name for child in children} - set(folders))
            reasons = rules.reasons(str(path), folders, others)
            for child in children:
                if child.name in reasons:
                    skipped.setdefault(reasons[child.name], []).append(child)
                else:
                    (links if child.is_symlink() else waiting).append(child)
        elif path.is_file():
            files.append(path)
        else:
            skipped.setdefault(SPECIAL, []).append(path)
        seen.add(real)
    described = tuple(
        Skipped(reason, len(paths), as_text(str(min(paths).relative_to(folder))))
        for reason, paths in sorted(skipped.items())
    )
    if not files and not unread:
        found = "; ".join(["a folder without files", *map(str, described)])
        remedy = "check the path"
        if LINKED_OUT in skipped:
            remedy += ", or follow such links with --follow-symlinks"
        raise corpus_error(folder, None, found, expected, remedy)
    return sorted(files), described


def _named(error: OSError, path: Path) -> OSError:
    """Return the error of an entry of a folder with its own path: that of a link names only what the link leads to."""
    reason = error.strerror
    if path.is_symlink():
        reason = f"a link to {path.readlink()}: {reason}"
    return OSError(error.errno, reason, str(path))


def as_text(name: str) -> str:
    r"""Return the name of a file as valid Unicode: a byte that is not UTF-8 is written as \xe9, as Python does.

    It is in NFC, the form that people type and Git uses. A disk of macOS can return it in NFD.
    """
    return normalize("NFC", os.fsencode(name).decode(errors="backslashreplace"))


def _is_site(folder: Path) -> bool:
    """Return whether `semsearch site` has written this folder."""
    return (folder / "service-worker.js").is_file() and all((folder / name).is_dir() for name in ("code", "data"))


@contextmanager
def refusing_changes(path: Path) -> Iterator[None]:
    """Raise CorpusError if the file was written or replaced during the block: its rows would be half old and half new.

    A CorpusError of the block becomes that error's cause.
    """
    before, error = _state(path), None
    try:
        yield
    except CorpusError as raised:
        error = raised
    if _state(path) != before:
        remedy = "run the command again when nothing writes the file, or copy it first"
        raise corpus_error(path, None, "another file than at the start", "the same until it is read", remedy) from error
    if error is not None:
        raise error


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
