"""The default corpus: what the running Python's standard library says about itself, some 6,000 passages.

Modules are read by parsing their source with ast, never by importing them: some start a browser, open a
window or need a platform. What is written in C has no source; for the modules of IN_C, which are harmless to
import and mostly loaded already, the docstrings of the living objects are taken instead.

Left out: tests, applications and converters (SKIPPED), private names, and whatever has no docstring.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from export.corpus import Corpus, CorpusError

NAME = "Python's own documentation"  # what a manifest calls this corpus

SKIPPED = {"test", "tests", "idle_test", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "__main__"}
SKIPPED |= {"distutils", "encodings"}  # gone since Python 3.12; a hundred tables of characters
SKIPPED |= {"ntpath", "posixpath"} - {os.path.__name__}  # the paths of other systems

# Standard, without effect when imported, and with answers to everyday questions only their C code documents.
IN_C = (
    *("builtins", "array", "binascii", "bz2", "cmath", "collections", "contextvars", "csv"),
    *("functools", "gc", "io", "itertools", "lzma", "math", "os", "queue", "random", "re"),
    *("select", "struct", "sys", "time", "unicodedata", "weakref", "zlib"),
)

# Where the source of a public module lies under another name, and nothing in it says so in all versions.
KNOWN_AS = {
    os.path.__name__: "os.path",
    "_collections_abc": "collections.abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
}
INTERNAL = {"genericpath"}  # public by its name only: posixpath and ntpath offer what it defines

ENOUGH_WORDS = 12  # a first paragraph shorter than this takes the next one along
MOST_WORDS = 60  # about 80 tokens, well within the 128 or more that sentence embedders read

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Entry:
    """One documented object and the module that offers it; name is "ZipFile.extractall", "" for a module."""

    module: str
    name: str
    kind: str  # "module", "class", "function", "method" or "property"
    signature: str
    doc: str

    @property
    def id(self) -> str:
        """The qualified name; builtins go without their module, as in "str.split"."""
        if self.module == "builtins":
            return self.name
        return f"{self.module}.{self.name}" if self.name else self.module


def python_documentation() -> Corpus:
    """Give a passage for each public module, class, function, method and property, sorted by qualified name.

    A text reads "zipfile.ZipFile.extractall: Extract all members …"; its id is the qualified name, and its
    metadata a JSON object with kind, module and signature. Takes some four seconds.
    Raises CorpusError if this Python came without the sources of its library.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    trees = dict(_parsed_modules(folder))
    if "json" not in trees:
        raise CorpusError(
            f"{folder}: found no sources of the standard library, expected files such as json/__init__.py;"
            " name a file of your own with --corpus"
        )
    entries: dict[str, _Entry] = {}
    for entry in [*_from_source(trees), *_from_c()]:
        if entry.doc.strip():
            entries.setdefault(entry.id, entry)
    ordered = [entries[key] for key in sorted(entries)]
    return Corpus(
        texts=[f"{entry.id}: {_summary(entry.doc)}" for entry in ordered],
        ids=[entry.id for entry in ordered],
        metadata=[_metadata(entry) for entry in ordered],
        empty_texts=0,
    )


def _metadata(entry: _Entry) -> str:
    fields = {"kind": entry.kind, "module": entry.module, "signature": entry.signature}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _summary(doc: str) -> str:
    """Give the first paragraphs of a docstring until they say enough, on one line and cut after a word."""
    lines = re.split(r"(?:\n.*:)?\s*\n\s*>>>", inspect.cleandoc(doc))[0].splitlines()  # no examples
    prose = list(itertools.dropwhile(lambda line: not line.strip() or _SIGNATURE.fullmatch(line), lines))
    words: list[str] = []
    is_prose = False
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose or lines)):
        if is_prose and len(words) >= ENOUGH_WORDS:
            break
        is_prose = _CALL.match(paragraph) is None
        words += [word for word in paragraph.split() if not _RULE.fullmatch(word)]
    return " ".join(words) if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS]) + " …"


_CALL = re.compile(r"(\w+ = )?[\w.]+\(")
_SIGNATURE = re.compile(_CALL.pattern + r".*\)(\s*-+>\s*[\w-]+( \w+){0,2}\.?)?\s*")  # "time() -> float"
_RULE = re.compile(r"[-=~*#]{3,}")  # a line under a heading


# From source


def _parsed_modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    """Give the name and the syntax tree of each module of the standard library, private ones included."""
    for top in sorted(sys.stdlib_module_names - SKIPPED):
        for path in [folder / f"{top}.py", *sorted((folder / top).rglob("*.py"))]:
            parts = path.relative_to(folder).with_suffix("").parts
            if path.is_file() and SKIPPED.isdisjoint(parts):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # invalid escapes in old files are not our user's concern
                    tree = ast.parse(path.read_bytes())
                yield ".".join(parts).removesuffix(".__init__"), tree


def _from_source(trees: dict[str, ast.Module]) -> Iterator[_Entry]:
    """Give what public modules define, and what they offer from private modules or their own submodules.

    asyncio.tasks.gather is known as asyncio.gather: each definition goes to the shortest public name.
    """
    homes: dict[tuple[str, str], str] = {}  # (defining module, name there): the module that offers it
    for module, tree in trees.items():
        if not _is_public(module):
            continue
        known = KNOWN_AS.get(module, module)
        defined = [(module, node.name) for node in _definitions(tree.body)]
        for key in [*defined, *_offered(module, trees)]:
            homes[key] = min(homes.get(key, known), known, key=lambda home: (home.count("."), home))
        if not module.startswith("_"):
            yield _Entry(known, "", "module", f"import {known}", ast.get_docstring(tree) or "")
    for (source, name), home in homes.items():
        for node in _definitions(trees[source].body):
            if node.name == name:
                yield from _described(node, home, "")


def _offered(module: str, trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Give (source, name) for each name that a module imports from a private module or its own submodule.

    Where the module spells out __all__, a name imported singly must be in it.
    """
    listed = _listed_in_all(trees[module])
    is_package = any(other.startswith(f"{module}.") for other in trees)
    for node in _statements(trees[module].body):
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
    """Give the names of __all__, or None where it is missing or computed, as in asyncio/__init__.py."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def _described(node: Definition, module: str, prefix: str) -> Iterator[_Entry]:
    """Give an entry for a definition and, for a class, for its members; names without "_" in front only."""
    if node.name.startswith("_"):
        return
    name = f"{prefix}{node.name}"
    doc = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        members = list(_definitions(node.body))
        starts = [member for member in members if isinstance(member, Function) and member.name == "__init__"]
        arguments = re.sub(r"^\w+(, /)?(, )?", "", ast.unparse(starts[0].args)) if starts else "..."
        yield _Entry(module, name, "class", f"{node.name}({arguments})", doc)
        for member in members:
            yield from _described(member, module, f"{name}.")
    elif any(re.search("property|setter", ast.unparse(decorator)) for decorator in node.decorator_list):
        yield _Entry(module, name, "property", node.name, doc)
    else:
        kind = "method" if prefix else "function"
        yield _Entry(module, name, kind, f"{node.name}({ast.unparse(node.args)})", doc)


def _definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    return (node for node in _statements(body) if isinstance(node, Definition))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements of a body, also those under if, else, try, except and with."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for block in ("body", "handlers", "orelse", "finalbody"):
                for inner in getattr(node, block, []):
                    yield from _statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _is_public(module: str) -> bool:
    if module in KNOWN_AS:
        return True
    return module not in INTERNAL and not any(part.startswith("_") for part in module.split("."))


# From living objects


def _from_c() -> Iterator[_Entry]:
    """Give the functions and classes that the modules of IN_C have from C."""
    for module in IN_C:
        inside = {module, f"_{module}", os.name if module == "os" else module}
        for name, value in sorted(vars(importlib.import_module(module)).items()):
            is_own = module == "builtins" or getattr(value, "__module__", None) in inside
            if name.startswith("_") or not is_own:
                continue
            kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else ""
            if kind:
                yield _Entry(module, name, kind, _signature(name, kind, value), value.__doc__ or "")
            for member, attribute in sorted(vars(value).items()) if kind == "class" else ():
                if not member.startswith("_") and inspect.isroutine(attribute):
                    signature, doc = _signature(member, "method", attribute), attribute.__doc__ or ""
                    yield _Entry(module, f"{name}.{member}", "method", signature, doc)


def _signature(name: str, kind: str, value: object) -> str:
    """Give the call of a C object as its source states it; "(...)" where that says nothing."""
    stated = getattr(getattr(value, "__func__", value), "__text_signature__", None) or "(...)"
    stated = " ".join(stated.replace("<unrepresentable>", "...").split())
    if kind == "method":
        return name + stated.replace("$type", "cls").replace("$", "")
    return name + re.sub(r"\$\w+(, /)?(, )?", "", stated, count=1)
