"""`python -m function.quick_start`: make the archive of what INIT imports, as the last step of an image."""

import sys

before = set(sys.modules)

import ast  # noqa: E402  what is imported from here on goes into the archive
import importlib  # noqa: E402
import marshal  # noqa: E402
from collections.abc import Iterable  # noqa: E402
from importlib.machinery import ModuleSpec  # noqa: E402
from pathlib import Path  # noqa: E402

from function.quick_start.archive import ARCHIVE, Index  # noqa: E402
from function.quick_start.lazy import lazy_modules  # noqa: E402
from function.quick_start.models import no_pydantic_extras  # noqa: E402
from function.quick_start.openapi import described_later  # noqa: E402

# what function/handler.py imports, but for itself: it opens a bundle, and there may be none yet
IMPORTED = (
    *("concurrent.futures.thread", "function.quick_start.collection", "function.engine.loading", "fastapi", "mangum"),
    *("function.app", "function.quick_start.endpoints", "function.telemetry", "function.warm_up"),
)


def compile_without_docstrings(spec: ModuleSpec) -> bytes:
    """Give a module's code: a quarter of the libraries' is docstrings, which would be read and made at each start."""
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_bytes())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.copy_location(ast.Pass(), node.body[0])]
    return marshal.dumps(compile(tree, spec.origin, "exec", dont_inherit=True))


def write_archive(names: Iterable[str], packages: Path) -> int:
    """Write those of these imported modules that have a source; give how many. packages is the folder they are in."""
    index: Index = {}
    parts, length = [], 0
    for name in names:
        spec = getattr(sys.modules[name], "__spec__", None)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue  # compiled, built in or frozen
        code = compile_without_docstrings(spec)
        index[name] = (length, len(code), spec.origin, spec.submodule_search_locations is not None)
        parts.append(code)
        length += len(code)
    head = marshal.dumps((sys.version, str(packages), index))
    Path(ARCHIVE).write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *parts]))
    return len(index)


with no_pydantic_extras(), lazy_modules(), described_later():
    for imported in IMPORTED:
        importlib.import_module(imported)
import numpy as np  # noqa: E402

fresh = [name for name in sys.modules if name not in before and name.partition(".")[0] != "function"]
count = write_archive(fresh, Path(np.__file__).parents[1])
print(f"{ARCHIVE}: {count} modules, {Path(ARCHIVE).stat().st_size:,} bytes")  # noqa: T201
