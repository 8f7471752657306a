"""The names of several folders whose documents are one index: their ids and paths begin with them.

A search of folders whose files have not changed uses this module too, so it imports nothing that makes an index.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semsearch.indexing.corpus import CorpusError


def name_folders(paths: Sequence[str | Path]) -> dict[str, Path]:
    """Return folders by their names, in the order of the names; the order of the paths does not matter.

    A name is the last part of a path. If it is the name of another folder too, or if the name of another begins with
    it, both get the parts above until they differ.
    Raises CorpusError for what cannot be one of several folders.
    """
    whole = [_folder_at(path) for path in paths]
    for outer, inner in permutations(whole, 2):
        if inner.is_relative_to(outer):
            found = f"the folder {inner} in it, which is named too"
            raise _error(outer, found, "folders of which none is in another", "leave one out")
    names = {path: Path(path.name) for path in whole}
    while clashing := _clashing(names):
        names |= {path: _longer(names[path], path) for path in clashing}
    return {name.as_posix(): path for path, name in sorted(names.items(), key=lambda each: each[1].parts)}


def _clashing(names: Mapping[Path, Path]) -> set[Path]:
    """Return the folders whose name is that of another or the beginning of it, and those others; none with whole paths.

    Whole paths differ, and none is the beginning of another.
    """
    pairs = (pair for pair in permutations(names, 2) if names[pair[0]].is_relative_to(names[pair[1]]))
    return {path for pair in pairs for path in pair if names[path] != _longer(names[path], path)}


def _longer(name: Path, path: Path) -> Path:
    """Return a name with one more part of the path, if there is one."""
    parts = path.relative_to(path.anchor).parts
    return Path(*parts[-len(name.parts) - 1 :])


def _folder_at(path: str | Path) -> Path:
    """Return the place of a folder, which can be missing now. Raises CorpusError for an address and a file."""
    expected, remedy = "a folder of documents, as one of several", "name folders, or index it alone"
    if "://" in str(path) or Path(path).parts[:1] == ("s3:",):
        raise _error(Path(path), "an address", expected, remedy)
    folder = Path(path).resolve()
    if folder.is_file():
        raise _error(Path(path), "a file", expected, remedy)
    return folder


def _error(path: Path, found: str, expected: str, remedy: str) -> "CorpusError":
    from semsearch.indexing.corpus.corpus import corpus_error  # it imports what reads tables

    return corpus_error(path, None, found, expected, remedy)
