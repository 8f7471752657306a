"""`python -m function.quick_start`: make the archive of what INIT imports, as the last step of an image."""

import sys

before = set(sys.modules)

import __future__  # noqa: E402  what is imported from here on goes into the archive

import ast  # noqa: E402
import importlib  # noqa: E402
import marshal  # noqa: E402
from collections.abc import Iterable  # noqa: E402
from importlib.machinery import ModuleSpec  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from function.quick_start.absent import absent_modules  # noqa: E402
from function.quick_start.archive import ARCHIVE, Index, Snippets  # noqa: E402
from function.quick_start.dataclass_methods import dataclass_methods_by  # noqa: E402
from function.quick_start.lazy import lazy_modules  # noqa: E402
from function.quick_start.numpy_types import no_numpy_types  # noqa: E402
from function.quick_start.openapi import described_later  # noqa: E402

# what function/handler.py imports, but for itself: it opens a bundle, and there may be none yet
IMPORTED = (
    *("concurrent.futures.thread", "function.quick_start.collection", "function.engine.loading", "fastapi", "mangum"),
    *("function.app", "function.events", "function.quick_start.endpoints", "function.telemetry", "function.warm_up"),
)
# their parameters are annotated with their documentation, which is made at each start; nobody reads these annotations,
# and they are left as text, as `from __future__ import annotations` does
DOCUMENTED = {"fastapi.applications", "fastapi.routing", "fastapi.param_functions", "fastapi.params"}


# docstrings would be read and made at each start; left out only where nothing is computed with them, as NumPy and the
# standard library's mail do
WITHOUT_DOCSTRINGS = {"pydantic", "fastapi", "starlette", "anyio", "aws_lambda_powertools", "onnxruntime", "mangum"}


def compile_module(spec: ModuleSpec) -> bytes:
    """Give a module's code, without what no start needs."""
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_bytes())
    for node in ast.walk(tree) if spec.name.partition(".")[0] in WITHOUT_DOCSTRINGS else ():
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.copy_location(ast.Pass(), node.body[0])]
    flags = __future__.annotations.compiler_flag if spec.name in DOCUMENTED else 0
    return marshal.dumps(compile(tree, spec.origin, "exec", flags, dont_inherit=True))


def write_archive(names: Iterable[str], sources: Iterable[str], packages: Path) -> int:
    """Write those of these imported modules that have a source, and the snippets; give how many modules.

    sources are the snippets', packages is the folder that the modules are in.
    """
    index: Index = {}
    snippets: Snippets = {}
    parts, length = [], 0
    for name in names:
        spec = getattr(sys.modules[name], "__spec__", None)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue  # compiled, built in or frozen
        code = compile_module(spec)
        index[name] = (length, len(code), spec.origin, spec.submodule_search_locations is not None)
        parts.append(code)
        length += len(code)
    for source in sources:
        code = marshal.dumps(compile(source, "<string>", "exec", dont_inherit=True))
        snippets[source] = (length, len(code))
        parts.append(code)
        length += len(code)
    distributions = frozenset(folder.name for folder in packages.glob("*.dist-info"))
    head = marshal.dumps((sys.version, str(packages), distributions, index, snippets))
    Path(ARCHIVE).write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *parts]))
    return len(index)


written: dict[str, None] = {}  # the source of dataclasses' methods; a dict keeps the order


def note(source: str, names: dict[str, Any], local_names: dict[str, Any]) -> None:
    """Do what `exec` does, and remember the source."""
    written[source] = None
    exec(source, names, local_names)  # noqa: S102


with absent_modules(), lazy_modules(), no_numpy_types(), described_later(), dataclass_methods_by(note):
    for imported in IMPORTED:
        importlib.import_module(imported)
import numpy as np  # noqa: E402

fresh = [name for name in sys.modules if name not in before and name.partition(".")[0] != "function"]
count = write_archive(fresh, written, Path(np.__file__).parents[1])
print(f"{ARCHIVE}: {count} modules, {Path(ARCHIVE).stat().st_size:,} bytes")  # noqa: T201
