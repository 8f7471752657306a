"""A class or a constant of the code has one meaning: its name is defined in one module."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.project import ROOT

EXCEPTIONS = {
    "SEED": "each module has a random generator of its own",
    "Hit": "the engine's, and that of `from semsearch import Hit`",
    "EXAMPLES": "each command has its own",
    "command": "each command has its own",
}


def names_of(module: Path) -> set[str]:
    """Return the public classes and constants of a module, without type variables."""
    names = set[str]()
    for statement in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef):
            names.add(statement.name)
        if isinstance(statement, ast.Assign) and "TypeVar(" not in ast.unparse(statement.value):
            nodes = [node for target in statement.targets for node in ast.walk(target)]
            names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if isinstance(statement, ast.AnnAssign):
            names.add(ast.unparse(statement.target))
    return {name for name in names if not name.startswith("_")}


def test_a_class_or_constant_is_defined_in_one_module() -> None:
    modules = defaultdict[str, list[str]](list)
    for folder in ("function", "export", "semsearch", "deploy"):
        for module in (ROOT / folder).rglob("*.py"):
            for name in names_of(module):
                modules[name].append(str(module.relative_to(ROOT)))
    several = {name: places for name, places in modules.items() if len(places) > 1}
    assert {name: places for name, places in several.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= several.keys()  # an exception that is no longer needed is removed
