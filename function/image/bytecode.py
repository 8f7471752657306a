"""Compile every Python source of the image, and the modules of the base image that have no bytecode.

The root folder of a function is read-only, so a module without bytecode is compiled again in every cold start. The
bytecode is never compared with its source (PEP 552, unchecked). The usual kind contains the source's time, which tools
change that set all times in a layer alike, and the source cannot change anyway.
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
    """Compile each source below `root`, which becomes / in the image, and return the number of sources."""
    sources = sorted(root.rglob("*.py"))
    for source in sources:
        bytecode = Path(importlib.util.cache_from_source(str(source)))
        _compile(source, bytecode, Path("/") / source.relative_to(root))
    return len(sources)


def compile_base(root: Path) -> int:
    """Compile the modules of the interpreter and of Lambda's runtime without valid bytecode; return their number.

    The bytecode is written below `root`, so that an image needs a copy of nothing else of the base.
    """
    sources = [
        source for source in (*_below(Path(sysconfig.get_path("stdlib"))), *_runtime()) if not _has_bytecode(source)
    ]
    for source in sources:
        _compile(source, root / importlib.util.cache_from_source(str(source)).lstrip("/"), source)
    return len(sources)


def _below(folder: Path) -> Iterator[Path]:
    for source in sorted(folder.rglob("*.py")):
        if not UNUSED.intersection(source.relative_to(folder).parts):
            yield source


def _runtime() -> Iterator[Path]:
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
    """Write bytecode. Its tracebacks name `shown` as the source. Raises PyCompileError for invalid Python."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(bytecode), dfile=str(shown), doraise=True, invalidation_mode=mode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="folder that becomes / in the image")
    parser.add_argument("--base", action="store_true", help="also the base image's modules without bytecode")
    options = parser.parse_args()
    print(f"{compile_tree(options.root)} sources compiled below {options.root}")
    if options.base:
        print(f"{compile_base(options.root)} of the base had no valid bytecode")
