"""Write the archive of the modules that the function imports: the last step of an image.

It runs in the build of the image, with the interpreter and in the folder of the function in the image.
function/archive.py describes the file.

Some modules in the archive replace a library's own. Each replacement saves time or memory in a cold start and does not
change any reply. `python -m bench cold-start --without` measures each kind, and docs/cold-start.md has the results.
"""

import argparse
import ast
import json
import marshal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType

from function.archive import ARCHIVE, ArchivedModules, Snippets

PROJECT = Path(ARCHIVE).parents[1]
LAZY_STUB = Path(__file__).parent / "stubs" / "lazy_module.py"

LAZY = (
    # NumPy: docstrings of its compiled functions; files and records
    *("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._core._internal"),
    *("numpy._core._dtype_ctypes", "numpy.lib.format", "numpy.lib.mixins", "numpy.lib.npyio", "numpy.lib.scimath"),
    # powertools: queries into events, and buffered logs
    *("aws_lambda_powertools.utilities.jmespath_utils", "aws_lambda_powertools.logging.buffer"),
    # pydantic: discriminated unions
    "pydantic._internal._discriminated_union",
    # the standard library: event loops, connections, mail, archives, hashes by OpenSSL
    *("asyncio", "ssl", "asyncio.sslproto", "email.header", "hashlib", "pickle", "locale", "shutil", "zipfile"),
)
KINDS = {
    "lazy": "modules that no request uses run at the first access to an attribute",
    "core-schema": "the hundred TypedDicts of pydantic_core's schemas are plain dicts",
    "numpy-types": "NumPy's linear algebra does not import NumPy's types for type checkers",
    "dataclasses": "the methods that dataclasses write are compiled before",
    "openapi-models": "FastAPI's models of an OpenAPI document are built when one is first made",
    "pydantic-1": "pydantic's version 1 has no models, because FastAPI only looks whether a class is one of them",
    "body-schemas": "the schemas of bodies are literals, so that a start does not import pydantic",
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
    code: CodeType = compile(tree, str(file), "exec")
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


def _build_at_first_use(tree: ast.Module) -> None:
    rebuilds = [node for node in tree.body if ast.unparse(node).endswith(".model_rebuild()")]
    classes = [place for place, node in enumerate(tree.body) if isinstance(node, ast.ClassDef)]
    if not rebuilds or not classes:
        raise ReplacementError("fastapi.openapi.models: builds no models; check if it still needs a replacement")
    tree.body[classes[0] : classes[0]] = ast.parse("class BaseModel(BaseModel, defer_build=True): pass").body
    tree.body = [node for node in tree.body if node not in rebuilds]


def _no_models_of_version_1(tree: ast.Module) -> None:
    if not any(isinstance(node, ast.ImportFrom) and node.module == "pydantic.v1.main" for node in tree.body):
        raise ReplacementError("pydantic.v1: does not import its models; check if it still needs a replacement")
    tree.body = ast.parse("class BaseModel: pass").body  # FastAPI looks whether a class is one of them


def _finished_schemas(tree: ast.Module) -> None:
    from semsearch.app.routes.body_schemas import BODY_SCHEMAS  # imports pydantic, and nothing else here needs it

    modules: set[str] = set()
    schemas = _literal(BODY_SCHEMAS, modules)
    tree.body = ast.parse(f"import {', '.join(sorted(modules))}\nBODY_SCHEMAS = {schemas}").body


def _literal(value: object, modules: set[str]) -> str:
    """Return the source of a schema. Functions and classes are named, and `modules` gets the modules they are in."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_literal(each, modules)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(each, modules) for each in value) + "]"
    if isinstance(value, FunctionType | type):
        modules.add(value.__module__)
        return f"{value.__module__}.{value.__qualname__}"
    if value is not None and not isinstance(value, str | bool | int | float):
        raise ReplacementError(
            f"semsearch.app.routes.body_schemas: {value!r} in a schema cannot be written as a literal"
        )
    return repr(value)


# by name of a module: the kind, and the function that changes the module
REWRITTEN: dict[str, tuple[str, Callable[[ast.Module], None]]] = {
    "dataclasses": ("dataclasses", _run_snippets),
    "pydantic_core.core_schema": ("core-schema", _plain_dicts),
    "numpy.linalg._linalg": ("numpy-types", _no_types_for_checkers),
    "fastapi.openapi.models": ("openapi-models", _build_at_first_use),
    "pydantic.v1": ("pydantic-1", _no_models_of_version_1),
    "semsearch.app.routes.body_schemas": ("body-schemas", _finished_schemas),
}


# Prints the modules that a start and the FastAPI app import, and the sources of the snippets that they run.
# function.handler itself needs a bundle, and there can be none yet. So this imports the same modules, and sends
# GET /health to an app without a bundle.
WATCH = """
import json, sys
import function.archive as archive
before, snippets = set(sys.modules), {}
def run_snippet(source, names, local_names):
    snippets[source] = None
    exec(source, names, local_names)
archive.run_snippet = run_snippet
archive.use_archive(sys.argv[1])
import concurrent.futures.thread
from types import SimpleNamespace
import tokenizers.models
from semsearch.engine.loading import LoadedBundle
from semsearch.app.app import create_app
from function.events import make_handler
from semsearch.app.settings import Settings
from function.startup import WARM_UP
from semsearch.app.cold_start import ColdStart
from semsearch.app.telemetry import make_logger
manifest = SimpleNamespace(corpus=SimpleNamespace(rows=0, vectors=None))
embedder = SimpleNamespace(model=SimpleNamespace(max_tokens=1), is_open=True)
bundle = LoadedBundle(manifest=manifest, embedder=embedder, index=None, passages=None, folder=None)
app = create_app(bundle, Settings(), make_logger(Settings()), ColdStart(print))
health = {**WARM_UP, "requestContext": {"http": {"method": "GET", "path": "/health", "sourceIp": "127.0.0.1"}}}
assert make_handler(app, "/", is_closed=False)(health, None)["statusCode"] == 200
import onnxruntime, semsearch.app.fastapi_app, pydantic.v1
modules = {}
for name in list(sys.modules):
    origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
    if name not in before and origin.endswith(".py"):
        modules[name] = [origin, hasattr(sys.modules[name], "__path__")]
import numpy
print(json.dumps([modules, list(snippets), numpy.__file__]))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(ARCHIVE), help="default: beside function/archive.py")
    parser.add_argument("--without", action="append", choices=KINDS, default=[], help="leave a replacement out")
    options = parser.parse_args(arguments)
    count = build_archive(options.out, options.without)
    print(f"{options.out}: {count} modules, {options.out.stat().st_size:,} bytes")
    return 0


def build_archive(out: Path, without: Collection[str] = ()) -> int:
    """Write the archive and return the number of its modules.

    The first run has no archive and finds the files of the modules. The second has one with the replacements, and finds
    the modules that are still imported with them.
    """
    modules, _, numpy_file = _watch(out, "none")
    packages = Path(numpy_file).parents[1]
    write_archive(out, modules, (), packages, without)
    modules, snippets, _ = _watch(out, str(out))
    return write_archive(out, own_modules(PROJECT) | modules, snippets, packages, without)


def own_modules(project: Path) -> dict[str, tuple[str, bool]]:
    """Return all modules of semsearch {name: (source file, is a package)}, also those that only requests import."""
    found = {}
    for source in sorted((project / "semsearch").rglob("*.py")):
        parts = source.relative_to(project).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if is_package else parts)] = (str(source), is_package)
    return found


def _watch(out: Path, archive: str) -> tuple[dict[str, tuple[str, bool]], list[str], str]:
    command = [sys.executable, "-c", WATCH, archive]
    done = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True)
    modules, snippets, numpy_file = json.loads(done.stdout.splitlines()[-1])
    return modules, snippets, numpy_file


def write_archive(
    out: Path,
    modules: Mapping[str, tuple[str, bool]],
    snippets: Iterable[str],
    packages: Path,
    without: Collection[str] = (),
) -> int:
    """Write these modules {name: (source file, is a package)} and snippets; return the number of modules.

    packages is the folder in which the libraries are installed.
    """
    parts: list[bytes] = []
    length = 0

    def add(code: CodeType) -> tuple[int, int]:
        nonlocal length
        marshalled = marshal.dumps(code)
        parts.append(marshalled)
        length += len(marshalled)
        return length - len(marshalled), len(marshalled)

    listed: ArchivedModules = {}
    for name, (file, is_package) in modules.items():
        listed[name] = (*add(compile_module(name, Path(file), without)), file, is_package)
    compiled: Snippets = {source: add(compile(source, "<string>", "exec")) for source in snippets}
    distributions = frozenset(folder.name for folder in packages.glob("*.dist-info"))
    head = marshal.dumps((sys.version, str(packages), distributions, listed, compiled))
    out.write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *parts]))
    return len(listed)


if __name__ == "__main__":
    sys.exit(main())
