"""The libraries' compiled modules in one file, in the order in which INIT imports them.

Python looks for each module in several folders and opens a file of its own for it: some four hundred files, each a
look-up. From one mapped file they come in one read, which counts most where a file system is filled as it is read, as
that of a container image is in Lambda. `python -m function.quick_start` makes the file where packages do not change any
more: in an image. Only libraries are in it, none of this project's own modules.

    8 bytes     length of what follows up to the code, little-endian
    marshal     Python's version, the folder of the packages and the names of their *.dist-info folders, which hold
                their versions: elsewhere, or once one of them is another, the archive is not used
                the index: name -> (offset in the code, bytes, source file, whether it is a package)
                the snippets: source that the libraries' dataclasses are made of -> (offset, bytes)
    code        each module's, as marshal writes it: what a .pyc holds after its header, some without docstrings;
                and each snippet's
"""

import marshal
import mmap
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

ARCHIVE = os.path.join(os.path.dirname(__file__), "modules.bin")  # noqa: PTH118, PTH120  pathlib is not imported yet
Index = dict[str, tuple[int, int, str, bool]]
Snippets = dict[str, tuple[int, int]]


class _Loader(SourceFileLoader):
    """Python's own for a file, but that the code comes from the archive: source and data are found as ever."""

    def __init__(self, name: str, source: str, archive: "Archive") -> None:
        super().__init__(name, source)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType:
        return self._archive.get_code(fullname)


class Archive:
    """Finds the modules of an archive; all others are left to the finders behind it."""

    def __init__(self, index: Index, snippets: Snippets, code: memoryview) -> None:
        """Take an open archive."""
        self._index = index
        self._snippets = snippets
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the archive; Python calls this for every module."""
        if name not in self._index:
            return None
        _, _, source, is_package = self._index[name]
        spec = ModuleSpec(name, _Loader(name, source, self), origin=source, is_package=is_package)
        spec.has_location = True  # sets __file__: packages look for their data beside it
        if is_package:
            spec.submodule_search_locations = [source.rpartition("/")[0]]
        return spec

    def get_code(self, name: str) -> CodeType:
        """Give a module's code."""
        offset, length, _, _ = self._index[name]
        return self._load(offset, length)

    def run_snippet(self, source: str, names: dict[str, Any], local_names: dict[str, Any]) -> None:
        """Do what `exec` does, without compiling a source that is among the snippets."""
        place = self._snippets.get(source)
        exec(self._load(*place) if place else source, names, local_names)  # noqa: S102

    def _load(self, offset: int, length: int) -> CodeType:
        code: CodeType = marshal.loads(self._code[offset : offset + length])  # noqa: S302  trusted like a .pyc
        return code


def use_archive(file: str = ARCHIVE) -> Archive | None:
    """Import from the archive from now on, if there is one that was made here; give it."""
    if not os.path.exists(file):  # noqa: PTH110
        return None
    with open(file, "rb") as opened:  # noqa: PTH123
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    mapped.madvise(mmap.MADV_WILLNEED)
    content = memoryview(mapped)
    code = 8 + int.from_bytes(content[:8], "little")
    version, packages, distributions, index, snippets = marshal.loads(content[8:code])  # noqa: S302
    if version != sys.version or packages not in map(os.path.abspath, sys.path):
        return None
    if not distributions.issubset(os.listdir(packages)):  # noqa: PTH208
        return None
    archive = Archive(index, snippets, content[code:])
    sys.meta_path.insert(0, archive)
    return archive
