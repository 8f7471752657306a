"""Modules in the archive of compiled imports that replace a library's own, and the reasons.

Each entry saves time or memory in a cold start and does not change any reply. `python -m bench ablation` measures each
kind alone, and docs/cold-start.md has the results.
"""

import ast
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType

LAZY_STUB = Path(__file__).parent / "stubs" / "lazy_module.py"

LAZY = (
    # NumPy: docstrings of its compiled functions; files and records
    *("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._core._internal"),
    *("numpy._core._dtype_ctypes", "numpy.lib.format", "numpy.lib.mixins", "numpy.lib.npyio", "numpy.lib.scimath"),
    # powertools: queries into events, and buffered logs
    *("aws_lambda_powertools.utilities.jmespath_utils", "aws_lambda_powertools.logging.buffer"),
    # pydantic: discriminated unions
    "pydantic._internal._discriminated_union",
    # the standard library: connections, mail, archives, hashes by OpenSSL
    *("ssl", "asyncio.sslproto", "email.header", "hashlib", "pickle", "locale", "shutil", "zipfile"),
)
KINDS = {
    "lazy": "modules that no request uses run at the first access to an attribute",
    "core-schema": "the hundred TypedDicts of pydantic_core's schemas are plain dicts",
    "numpy-types": "NumPy's linear algebra does not import NumPy's types for type checkers",
    "dataclasses": "the methods that dataclasses write are compiled before",
}


class ReplacementError(ValueError):
    """A library has changed, and its replacement does not fit. The message has the module to look at."""


def compile_module(name: str, file: Path, without: Collection[str] = ()) -> CodeType:
    """Return a module's code for the archive: the library's own, or the replacement that KINDS describes.

    `file` is the library's source; tracebacks show it. `without` has the KINDS that are left out.
    Raises ReplacementError if the library has changed, and the replacement does not fit.
    """
    if name in LAZY and "lazy" not in without:
        tree = ast.parse(LAZY_STUB.read_bytes())
    else:
        tree = ast.parse(file.read_bytes())
        kind, change = REWRITTEN.get(name, ("", None))
        if change and kind not in without:
            change(tree)
    code: CodeType = compile(tree, str(file), "exec", dont_inherit=True)
    return code


def _run_snippets(tree: ast.Module) -> None:
    tree.body += ast.parse("from function.archive import run_snippet as exec").body


def _plain_dicts(tree: ast.Module) -> None:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    typed = [
        node for node in classes if any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in node.bases)
    ]
    if len(typed) < 50:
        raise ReplacementError("pydantic_core.core_schema: has few TypedDicts; check if it still needs a replacement")
    for node in classes:
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "total"]
    for node in typed:
        node.bases = [ast.copy_location(ast.Name("dict", ast.Load()), node)]


def _no_types_for_checkers(tree: ast.Module) -> None:
    kept = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "numpy._typing")]
    if len(kept) == len(tree.body):
        raise ReplacementError("numpy.linalg._linalg: does not import numpy._typing; drop its replacement")
    tree.body = [*ast.parse("from __future__ import annotations").body, *kept]  # they name those types


# by name of a module: the kind, and the function that changes the module
REWRITTEN: dict[str, tuple[str, Callable[[ast.Module], None]]] = {
    "dataclasses": ("dataclasses", _run_snippets),
    "pydantic_core.core_schema": ("core-schema", _plain_dicts),
    "numpy.linalg._linalg": ("numpy-types", _no_types_for_checkers),
}
