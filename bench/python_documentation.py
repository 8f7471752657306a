"""python -m bench.python_documentation OUT.jsonl: the texts of `make demo`, for `semsearch index OUT.jsonl`.

They are the documentation of the running Python's standard library, some 6,000 passages.

The source of the library is read with ast and never imported: importing some modules would start a browser, open a
window or need another platform. Modules written in C have no such source: those in IN_C are imported, which has no side
effects, and the docstrings of their objects are read. Left out: objects without a docstring, private names, and tests,
applications and converters (SKIPPED).
"""

import ast
import importlib
import inspect
import itertools
import json
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cyclopts import run

from bench import Missing

SKIPPED = {"test", "tests", "idle_test", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "__main__"}
SKIPPED |= {"distutils", "encodings"}  # removed in Python 3.12; a hundred tables of characters
SKIPPED |= {"ntpath", "posixpath"} - {os.path.__name__}  # the paths of other systems

# The public names of modules whose source has another name, where not every version of Python states it.
KNOWN_AS = {
    os.path.__name__: "os.path",
    "_collections_abc": "collections.abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
}
INTERNAL = {"genericpath"}  # its name has no underscore, but users reach its functions through os.path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Documented:
    """A documented object and the module that users import it from; name is "ZipFile.extractall", "" for a module."""

    module: str
    name: str
    kind: str  # "module", "class", "function", "method" or "property"
    signature: str
    doc: str

    @property
    def id(self) -> str:
        """Return the qualified name, without the module for builtins, as in "str.split"."""
        if self.module == "builtins":
            return self.name
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module


def parse_modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the syntax tree of each module of the standard library, private modules included."""
    for top in sorted(sys.stdlib_module_names - SKIPPED):
        for path in [folder / f"{top}.py", *sorted((folder / top).rglob("*.py"))]:
            parts = path.relative_to(folder).with_suffix("").parts
            if path.is_file() and SKIPPED.isdisjoint(parts):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the user cannot repair invalid escapes in old files
                    tree = ast.parse(path.read_bytes())
                yield ".".join(parts).removesuffix(".__init__"), tree


def entries_from_source(trees: dict[str, ast.Module]) -> Iterator[Documented]:
    """Yield what public modules define, and what they import from private modules or their own submodules.

    Each definition has its shortest public name: asyncio.tasks.gather is listed as asyncio.gather.
    """
    homes: dict[tuple[str, str], str] = {}  # (defining module, name there): the module to import it from
    for module, tree in trees.items():
        if not _is_public(module):
            continue
        known = KNOWN_AS.get(module, module)
        defined = [(module, node.name) for node in _definitions(tree.body)]
        for key in [*defined, *_offered(module, trees)]:
            homes[key] = min(homes.get(key, known), known, key=lambda home: (home.count("."), home))
        if not module.startswith("_"):
            yield Documented(known, "", "module", f"import {known}", ast.get_docstring(tree) or "")
    for (source, name), home in homes.items():
        for node in _definitions(trees[source].body):
            if node.name == name:
                yield from _described(node, home, "")


def _offered(module: str, trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield (source, name) for each name that a module imports from a private module or its own submodule.

    If the module has an __all__, a name that it imports by `from source import name` must be listed there.
    """
    listed = _listed_in_all(trees[module])
    is_package = any(other.startswith(f"{module}.") for other in trees)
    for node in _nodes(trees[module].body):
        if not isinstance(node, ast.ImportFrom):
            continue
        parent = module if is_package else module.rpartition(".")[0]
        for _ in range(node.level - 1):
            parent = parent.rpartition(".")[0]
        source = node.module or "" if node.level == 0 else f"{parent}.{node.module}"
        is_own = source.startswith(f"{module}.") or not _is_public(source)
        if source not in trees or not is_own:
            continue
        for alias in node.names:
            if alias.name == "*":
                exported = _listed_in_all(trees[source])
                defined = (definition.name for definition in _definitions(trees[source].body))
                yield from ((source, name) for name in (defined if exported is None else exported))
            elif alias.asname is None and (listed is None or alias.name in listed):
                yield source, alias.name


def _listed_in_all(tree: ast.Module) -> list[str] | None:
    """Return the names of __all__, or None if it is missing or computed, as in asyncio/__init__.py."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def _described(node: Definition, module: str, prefix: str) -> Iterator[Documented]:
    """Yield an entry for a definition and the members of a class, except for names that begin with "_"."""
    if node.name.startswith("_"):
        return
    name = f"{prefix}{node.name}"
    doc = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        members = list(_definitions(node.body))
        starts = [member for member in members if isinstance(member, Function) and member.name == "__init__"]
        arguments = "..."
        if starts:
            arguments = re.sub(r"^\w+(, /)?(, )?", "", ast.unparse(starts[0].args))
        yield Documented(module, name, "class", f"{node.name}({arguments})", doc)
        for member in members:
            yield from _described(member, module, f"{name}.")
    elif any(re.search("property|setter", ast.unparse(decorator)) for decorator in node.decorator_list):
        yield Documented(module, name, "property", node.name, doc)
    else:
        kind = "function"
        if prefix:
            kind = "method"
        yield Documented(module, name, kind, f"{node.name}({ast.unparse(node.args)})", doc)


def _definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    return (node for node in _nodes(body) if isinstance(node, Definition))


def _nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _nodes(ast.iter_child_nodes(node))


def _is_public(module: str) -> bool:
    is_private = module in INTERNAL or any(part.startswith("_") for part in module.split("."))
    return module in KNOWN_AS or not is_private


# Modules without side effects of importing, whose everyday functions are documented in their C code alone.
IN_C = (
    *("builtins", "array", "binascii", "bz2", "cmath", "collections", "contextvars", "csv"),
    *("functools", "gc", "io", "itertools", "lzma", "math", "os", "queue", "random", "re"),
    *("select", "struct", "sys", "time", "unicodedata", "weakref", "zlib"),
)

ENOUGH_WORDS = 12  # words of a text; a shorter first paragraph is followed by the next one
MOST_WORDS = 60  # words of a text: about 80 tokens, and sentence embedders read 128 or more


def write_documentation(out: Path, /) -> None:
    """Write Python's own documentation as JSON lines, from which `semsearch index` makes an index.

    Args:
        out: the file, such as build/python-documentation.jsonl. Its folder is made if there is none.
    """
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in python_documentation()]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines), encoding="utf-8")


def python_documentation() -> list[dict[str, str]]:
    """Return a row for each public module, class, function, method and property, sorted by qualified name.

    A text reads "zipfile.ZipFile.extractall: Extract all members …"; its id is the qualified name, and the other
    columns are kind, module and signature.
    Raises Missing if this Python was installed without the sources of its library.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    trees = dict(parse_modules(folder))
    if "json" not in trees:
        raise Missing(f"{folder}: has no sources of the library, expected json/__init__.py; use another Python")
    entries: dict[str, Documented] = {}
    for entry in [*entries_from_source(trees), *_from_c()]:
        if entry.doc.strip():
            entries.setdefault(entry.id, entry)
    return [
        {
            "id": entry.id,
            "text": f"{entry.id}: {_summary(entry.doc)}",
            "kind": entry.kind,
            "module": entry.module,
            "signature": entry.signature,
        }
        for _, entry in sorted(entries.items())
    ]


def _summary(doc: str) -> str:
    """Return the first paragraphs of a docstring, ENOUGH_WORDS to MOST_WORDS of them, on one line."""
    lines = re.split(r"(?:\n.*:)?\s*\n\s*>>>", inspect.cleandoc(doc))[0].splitlines()  # no examples
    prose = list(itertools.dropwhile(lambda line: not line.strip() or _SIGNATURE.fullmatch(line), lines))
    words: list[str] = []
    is_prose = False
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose or lines)):
        if is_prose and len(words) >= ENOUGH_WORDS:
            break
        is_prose = _CALL.match(paragraph) is None
        words += [word for word in paragraph.split() if not _RULE.fullmatch(word)]
    if len(words) <= MOST_WORDS:
        return " ".join(words)
    return " ".join(words[:MOST_WORDS]) + " …"


_CALL = re.compile(r"(\w+ = )?[\w.]+\(")
_SIGNATURE = re.compile(_CALL.pattern + r".*\)(\s*-+>\s*[\w-]+( \w+){0,2}\.?)?\s*")  # "time() -> float"
_RULE = re.compile(r"[-=~*#]{3,}")  # a line under a heading


def _from_c() -> Iterator[Documented]:
    for module in IN_C:
        inside = {module, f"_{module}", os.name if module == "os" else module}
        for name, value in sorted(vars(importlib.import_module(module)).items()):
            is_own = module == "builtins" or getattr(value, "__module__", None) in inside
            if name.startswith("_") or not is_own:
                continue
            kind = ""
            if inspect.isclass(value):
                kind = "class"
            elif inspect.isroutine(value):
                kind = "function"
            if kind:
                yield Documented(module, name, kind, _signature(name, kind, value), value.__doc__ or "")
            for member, attribute in sorted(vars(value).items()) if kind == "class" else ():
                if not member.startswith("_") and inspect.isroutine(attribute):
                    signature, doc = _signature(member, "method", attribute), attribute.__doc__ or ""
                    yield Documented(module, f"{name}.{member}", "method", signature, doc)


def _signature(name: str, kind: str, value: object) -> str:
    """Return the signature that the source of a C object states, "(...)" if it states none."""
    stated = getattr(getattr(value, "__func__", value), "__text_signature__", None) or "(...)"
    stated = " ".join(stated.replace("<unrepresentable>", "...").split())
    if kind == "method":
        return name + stated.replace("$type", "cls").replace("$", "")
    return name + re.sub(r"\$\w+(, /)?(, )?", "", stated, count=1)


if __name__ == "__main__":
    run(write_documentation)
