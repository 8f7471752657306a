"""Compile every Python source that goes into the image, and of the base what it does not bring compiled.

The root of a function is read-only, so what arrives without bytecode is compiled again at every cold start. The
bytecode is of the kind that is never compared with its source (PEP 552, unchecked): the usual kind holds the source's
time, which does not survive a tool that sets all times in a layer alike, and the source cannot change anyway.
"""

import argparse
import importlib.util
import os
import py_compile
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

UNUSED = {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "__pycache__"}


def compile_tree(root: Path) -> int:
    """Compile each source below root as if root were /, beside it, and return how many there were."""
    sources = sorted(root.rglob("*.py"))
    for source in sources:
        bytecode = Path(importlib.util.cache_from_source(str(source)))
        _compile(source, bytecode, Path("/") / source.relative_to(root))
    return len(sources)


def compile_base(root: Path) -> int:
    """Compile what of the interpreter and of Lambda's runtime has no valid bytecode, and return how many there were.

    The bytecode goes to where it belongs, but below root: the rest of the base need not be copied.
    """
    sources = [
        source for source in (*_below(Path(sysconfig.get_path("stdlib"))), *_runtime()) if not _has_bytecode(source)
    ]
    for source in sources:
        _compile(source, root / importlib.util.cache_from_source(str(source)).lstrip("/"), source)
    return len(sources)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the sources in a folder, without tests and tools."""
    for source in sorted(folder.rglob("*.py")):
        if not UNUSED.intersection(source.relative_to(folder).parts):
            yield source


def _runtime() -> Iterator[Path]:
    """Yield the sources of the packages that Lambda's runtime interface consists of, wherever the base has them."""
    before = set(sys.modules)
    sys.path.append(os.environ.get("LAMBDA_RUNTIME_DIR", "/var/runtime"))
    import awslambdaric.bootstrap  # noqa: F401

    for name in sorted({name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names):
        source = Path(getattr(sys.modules[name], "__file__", None) or "")
        if source.name == "__init__.py":
            yield from _below(source.parent)
        elif source.suffix == ".py":
            yield source


def _has_bytecode(source: Path) -> bool:
    """Return whether the interpreter would load this source's bytecode as it is."""
    bytecode = Path(importlib.util.cache_from_source(str(source)))
    if not bytecode.exists():
        return False
    magic, flags, seconds, length = struct.unpack("<4sIII", bytecode.read_bytes()[:16])
    if magic != importlib.util.MAGIC_NUMBER:
        return False
    if flags & 1:  # made from the source's hash, checked or not
        return True
    seen = source.stat()
    return (seconds, length) == (int(seen.st_mtime) & 0xFFFFFFFF, seen.st_size & 0xFFFFFFFF)


def _compile(source: Path, bytecode: Path, shown: Path) -> None:
    """Write bytecode; its tracebacks name the source as shown. Raises PyCompileError if the source is wrong."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(bytecode), dfile=str(shown), doraise=True, invalidation_mode=mode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="folder that stands for / in the image")
    parser.add_argument("--base", action="store_true", help="also what the base image lacks")
    options = parser.parse_args()
    print(f"{compile_tree(options.root)} sources compiled below {options.root}")
    if options.base:
        print(f"{compile_base(options.root)} of the base had no valid bytecode")
