"""Import compiled modules from one file, which `deploy/build_archive.py` writes while an image is built.

Python looks for each module in several folders and opens a file for it: some four hundred files in a cold start. One
mapped file is read in one pass. That saves most where the files of an image are loaded when they are first read, as in
Lambda. Some archived modules replace libraries' modules that take long to import and that no request needs
(deploy/replacements.py).

    8 bytes     length of the head, little-endian
    4 bytes     CRC-32 of the head
    head        marshal: Python's version, the folder of the packages, the names of their *.dist-info folders, which
                hold their versions, the modules {name: (offset, bytes, CRC-32, source file, is a package)} and the
                snippets {source: (offset, bytes, CRC-32)}, sources that libraries compile at run time
    code        of each module, as marshal writes it: what a .pyc holds after its header; then of each snippet

Without an archive, as in development, Python imports as usual.
"""

import marshal
import mmap
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any
from zlib import crc32

ARCHIVE = os.path.join(os.path.dirname(__file__), "archive.bin")  # noqa: PTH118, PTH120  pathlib is not imported yet

Place = tuple[int, int, int]  # offset in the code, bytes, CRC-32
Modules = dict[str, tuple[int, int, int, str, bool]]
Snippets = dict[str, Place]


class ArchiveError(ValueError):
    """An archive that cannot be used here. The message has the reason."""


class _Loader(SourceFileLoader):
    """Loads a module's code from the archive, and everything else (source, data files) from the library's folder."""

    def __init__(self, name: str, source: str, archive: "Archive") -> None:
        super().__init__(name, source)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the archived code, or the library's own if the archived bytes are damaged."""
        return self._archive.read(self._archive.modules[fullname][:3]) or super().get_code(fullname)

    def original_code(self, fullname: str) -> CodeType | None:
        """Return the code of the library's own file, for a replacement that needs the real module."""
        return super().get_code(fullname)


class Archive:
    """Finds the modules in an archive. Python's other finders find all other modules."""

    def __init__(self, content: memoryview) -> None:
        """Read the head. Raises ArchiveError if the archive is damaged or was made for other packages."""
        try:
            begin = 12 + int.from_bytes(content[:8], "little")
            head = content[12:begin]
            if len(content) < 12 or begin > len(content) or crc32(head) != int.from_bytes(content[8:12], "little"):
                raise ArchiveError("damaged")
            version, packages, distributions, self.modules, self.snippets = marshal.loads(head)  # noqa: S302  like a .pyc
        except (ValueError, EOFError, TypeError) as error:
            raise ArchiveError("damaged") from error
        self._code = content[begin:]
        self.status = "used"
        if version != sys.version:
            raise ArchiveError(f"made by Python {version.split()[0]}, this is {sys.version.split()[0]}")
        if packages not in map(os.path.abspath, sys.path) or not distributions.issubset(os.listdir(packages)):  # noqa: PTH208
            raise ArchiveError("made for other packages")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the location of a module in the archive, None for any other. Python calls this for every import."""
        if name not in self.modules:
            return None
        *_, source, is_package = self.modules[name]
        spec = ModuleSpec(name, _Loader(name, source, self), origin=source, is_package=is_package)
        spec.has_location = True  # sets __file__: packages look for their data beside it
        if is_package:
            spec.submodule_search_locations = [source.rpartition("/")[0]]
        return spec

    def read(self, place: Place) -> CodeType | None:
        """Return the code at a place in the archive, None if its bytes are damaged."""
        offset, length, checksum = place
        marshalled = self._code[offset : offset + length]
        if crc32(marshalled) != checksum:
            self.status = "used, but damaged in part"
            return None
        code: CodeType = marshal.loads(marshalled)  # noqa: S302  trusted like a .pyc
        return code


_in_use: Archive | None = None
_unused_because = "not opened yet"


def use_archive(file: str = ARCHIVE) -> None:
    """Import from the archive from now on, if it can be used here."""
    global _in_use, _unused_because
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.madvise(mmap.MADV_WILLNEED)
        _in_use = Archive(memoryview(mapped))
        sys.meta_path.insert(0, _in_use)
    except FileNotFoundError:
        _unused_because = "not there"
    except (OSError, ValueError) as error:  # ValueError also for an empty file, which cannot be mapped
        _unused_because = f"not used: {error}"


def archive_status() -> str:
    """Return "used", or why the archive is not used, for GET /info and a cold start's log line."""
    return _in_use.status if _in_use else _unused_because


def run_snippet(source: str, names: dict[str, Any], local_names: dict[str, Any]) -> None:
    """Do the same as `exec`, without compiling a source that is among the archive's snippets."""
    code = _in_use.read(_in_use.snippets[source]) if _in_use and source in _in_use.snippets else None
    exec(code or source, names, local_names)  # noqa: S102
