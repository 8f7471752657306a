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
from types import CodeType

from function.archive import ARCHIVE, ArchivedModules, Snippets

PROJECT = Path(ARCHIVE).parents[1]
LAZY_STUB = Path(__file__).parent / "stubs" / "lazy_module.py"

LAZY = (
    # NumPy: docstrings of its compiled functions; records
    *("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._core._internal"),
    "numpy._core._dtype_ctypes",
    # powertools: queries into events, and buffered logs
    *("aws_lambda_powertools.utilities.jmespath_utils", "aws_lambda_powertools.logging.buffer"),
    # pydantic: discriminated unions
    "pydantic._internal._discriminated_union",
    # the standard library: connections, hashes by OpenSSL, passwords, settings of Python's build
    *("ssl", "asyncio.sslproto", "hashlib", "pickle", "locale", "secrets", "sysconfig"),
)
# parts of NumPy that no search uses: padding, files, polynomials, functions that skip NaN, and others
NUMPY_PARTS = {
    *(".lib", ".lib._arraypad_impl", ".lib._index_tricks_impl", ".lib._nanfunctions_impl", ".lib._npyio_impl"),
    *(".lib._polynomial_impl", ".lib._shape_base_impl", ".lib._type_check_impl", ".lib._ufunclike_impl"),
    ".lib._utils_impl",
}
# by name of a module: the modules whose names it imports when they are first used, as the module itself writes them
DEFERRED: dict[str, set[str]] = {
    "numpy": NUMPY_PARTS,
    "numpy.lib": {".", "._arrayterator_impl"},
    "pydantic.plugin._loader": {"importlib.metadata"},
    "tokenizers": {".implementations"},
}
KINDS = {
    "deferred": "modules import some names from others when they are first used",
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
        if name in DEFERRED and "deferred" not in without:
            defer(tree, name, DEFERRED[name])
        kind, change = REWRITTEN.get(name, ("", None))
        if change and kind not in without:
            change(tree)
    code: CodeType = compile(tree, str(file), "exec", dont_inherit=True)
    return code


def defer(tree: ast.Module, name: str, sources: Collection[str]) -> None:
    """Change a module so that it imports the names of these modules, the sources, when they are first used.

    Each `from source import name` outside of functions is removed, and each use of the name becomes an access to an
    attribute of a `DeferredNames`. Raises ReplacementError if a source is not imported, or if a name has two meanings.
    """
    imports = _ImportsOf(sources)
    imports.visit(tree)
    missing = {*sources} - imports.seen
    if missing:
        raise ReplacementError(f"{name}: does not import from {', '.join(sorted(missing))}; correct DEFERRED")
    twice = sorted(imports.found.keys() & _bound_names(tree))
    if twice:
        raise ReplacementError(f"{name}: {', '.join(twice)} has another meaning too; take its module out of DEFERRED")
    _UsesOf(imports.found).visit(tree)
    _ComputedAll().visit(tree)
    prologue = "from function.archive import DeferredNames as __DeferredNames__\n"
    prologue += f"__deferred__ = __DeferredNames__(__package__, {imports.found!r})\n"
    epilogue = "__own_getattr__ = globals().get('__getattr__')\n"
    epilogue += "def __getattr__(name): return __deferred__.attribute_of(__name__, name, __own_getattr__)\n"
    begin = 0
    while _is_docstring_or_future(tree.body[begin]):
        begin += 1
    tree.body[begin:begin] = ast.parse(prologue).body
    tree.body += ast.parse(epilogue).body
    ast.fix_missing_locations(tree)


def _is_docstring_or_future(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _ComputedAll(ast.NodeTransformer):
    """Lets a module compute its `__all__` when it is first used, if it is not written as a list."""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        is_all = any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        if not is_all or isinstance(node.value, ast.List | ast.Tuple):
            return node
        no_arguments = ast.arguments([], [], None, [], [], None, [])
        compute = ast.Attribute(ast.Name("__deferred__", ast.Load()), "compute", ast.Load())
        call = ast.Call(compute, [ast.Constant("__all__"), ast.Lambda(no_arguments, node.value)], [])
        return ast.copy_location(ast.Expr(call), node)


class _ImportsOf(ast.NodeTransformer):
    """Removes the imports of names from some modules outside of functions, and finds the names."""

    def __init__(self, sources: Collection[str]) -> None:
        self._sources = sources
        self.seen: set[str] = set()
        self.found: dict[str, tuple[str, str | None]] = {}  # what a `DeferredNames` takes

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        source = "." * node.level + (node.module or "")
        if source not in self._sources:
            return node
        self.seen.add(source)
        for alias in node.names:
            if node.module is None:  # `from . import part`: the name is a module of the package
                self.found[alias.asname or alias.name] = (source + alias.name, None)
            else:
                self.found[alias.asname or alias.name] = (source, alias.name)
        return ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node


class _UsesOf(ast.NodeTransformer):
    """Turns each use of a deferred name into an access to an attribute of `__deferred__`."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names:
            return node
        deferred = ast.copy_location(ast.Name("__deferred__", ast.Load()), node)
        return ast.copy_location(ast.Attribute(deferred, node.id, ast.Load()), node)


def _bound_names(tree: ast.Module) -> set[str]:
    """Return all names that a module or one of its functions binds."""
    bound = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bound.add(node.id)
            case ast.arg():
                bound.add(node.arg)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.alias():
                bound.add(node.asname or node.name.partition(".")[0])
    return bound


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
from semsearch.engine.loading import LoadedBundle
from semsearch.app.app import create_app
from function.events import make_handler
from semsearch.app.settings import Settings
from function.startup import WARM_UP
from semsearch.app.cold_start import ColdStart
from semsearch.app.telemetry import make_logger
manifest = SimpleNamespace(corpus=SimpleNamespace(rows=0))
embedder = SimpleNamespace(model=SimpleNamespace(max_tokens=1), is_open=True)
bundle = LoadedBundle(manifest=manifest, embedder=embedder, index=None, passages=None, folder=None)
app = create_app(bundle, Settings(), make_logger(Settings()), ColdStart(print))
health = {**WARM_UP, "requestContext": {"http": {"method": "GET", "path": "/health", "sourceIp": "127.0.0.1"}}}
assert make_handler(app, "/")(health, None)["statusCode"] == 200
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
    if "dataclasses" in without:
        snippets = []
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
    compiled: Snippets = {source: add(compile(source, "<string>", "exec", dont_inherit=True)) for source in snippets}
    distributions = frozenset(folder.name for folder in packages.glob("*.dist-info"))
    head = marshal.dumps((sys.version, str(packages), distributions, listed, compiled))
    out.write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *parts]))
    return len(listed)


if __name__ == "__main__":
    sys.exit(main())
