"""What the source of the standard library documents, read with ast and never imported.

Importing some modules would start a browser, open a window or need another platform. Left out: tests, applications and
converters (SKIPPED), and private names.
"""

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
        return f"{self.module}.{self.name}" if self.name else self.module


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
        arguments = re.sub(r"^\w+(, /)?(, )?", "", ast.unparse(starts[0].args)) if starts else "..."
        yield Documented(module, name, "class", f"{node.name}({arguments})", doc)
        for member in members:
            yield from _described(member, module, f"{name}.")
    elif any(re.search("property|setter", ast.unparse(decorator)) for decorator in node.decorator_list):
        yield Documented(module, name, "property", node.name, doc)
    else:
        kind = "method" if prefix else "function"
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
