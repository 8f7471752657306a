"""Import compiled modules from one file, which `function/image/build_archive.py` writes while an image is built.

Python looks for each module in several folders and opens a file for it: some four hundred files in a cold start. The
archive is one file, which is read in one pass. This saves most in Lambda, which loads the files of an image when they
are first read. Some archived modules are stubs: they replace modules of libraries that take long to import and that no
request needs.

    8 bytes     length of the head, little-endian
    head        marshal: Python's version, the folder of the packages, the names of their *.dist-info folders, which
                hold their versions, the modules {name: (offset, bytes, source file, is a package)} and the snippets
                {source: (offset, bytes)}, sources that libraries compile at run time
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

ARCHIVE = os.path.join(os.path.dirname(__file__), "archive.bin")  # noqa: PTH118, PTH120  pathlib is not imported yet

ArchivedModules = dict[str, tuple[int, int, str, bool]]
Snippets = dict[str, tuple[int, int]]


class _Loader(SourceFileLoader):
    """Loads a module's code from the archive, and everything else (source, data files) from the library's folder."""

    def __init__(self, name: str, source: str, archive: "Archive") -> None:
        super().__init__(name, source)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType:
        """Return the archived code."""
        return self._archive.read(*self._archive.modules[fullname][:2])

    def original_code(self, fullname: str) -> CodeType | None:
        """Return the code of the library's own file, for a replacement that needs the real module."""
        return super().get_code(fullname)


class Archive:
    """Finds the modules in an archive. Python's other finders find all other modules."""

    def __init__(self, content: memoryview) -> None:
        """Read the head. Raises an error if the archive is damaged, ValueError if it was made for other packages."""
        begin = 8 + int.from_bytes(content[:8], "little")
        head = marshal.loads(content[8:begin])  # noqa: S302  like a .pyc
        version, packages, distributions, self.modules, self.snippets = head
        self._code = content[begin:]
        if version != sys.version:
            raise ValueError(f"made by Python {version.split()[0]}, this is {sys.version.split()[0]}")
        if packages not in map(os.path.abspath, sys.path) or not distributions.issubset(os.listdir(packages)):  # noqa: PTH208
            raise ValueError("made for other packages")

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

    def read(self, offset: int, length: int) -> CodeType:
        """Return the code at a place in the archive."""
        code: CodeType = marshal.loads(self._code[offset : offset + length])  # noqa: S302  like a .pyc
        return code


_in_use: Archive | None = None
_status = "not opened yet"


def use_archive(file: str = ARCHIVE) -> None:
    """Import from the archive from now on, if it can be used here."""
    global _in_use, _status
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.madvise(mmap.MADV_WILLNEED)
        _in_use = Archive(memoryview(mapped))
        sys.meta_path.insert(0, _in_use)
        _status = "used"
    except FileNotFoundError:
        _status = "not there"
    except (OSError, ValueError, EOFError, TypeError) as error:  # the last two from a head that was cut off
        _status = f"not used: {error}"


def archive_status() -> str:
    """Return "used", or why the archive is not used, for GET /info and a cold start's log line."""
    return _status


def run_snippet(source: str, names: dict[str, Any], local_names: dict[str, Any]) -> None:
    """Do the same as `exec`, without compiling a source that is among the archive's snippets."""
    if _in_use and source in _in_use.snippets:
        code = _in_use.read(*_in_use.snippets[source])
    else:
        code = None
    exec(code or source, names, local_names)  # noqa: S102
