"""Change the code at random and see which changes no test notices: `make mutants`, or python -m tests.mutants -h.

Each change is made in a copy of the checkout. The tests in its folder under tests/ run first, then others
that name the module. Whether a change that no test notices matters is for the reader to decide.
"""

import argparse
import ast
import copy
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.project import ROOT

FOLDERS = ("function", "semsearch/engine", "semsearch/search", "semsearch/indexing/vectors", "semsearch/conversion")
MOST_SECONDS = 300  # for the tests of one change; a change that makes them hang counts as noticed
MOST_BYTES = 6 << 30  # memory for the tests of one change, which can make a loop endless or an array too large
NOT_COMPUTED = {"annotation", "returns", "decorator_list", "type_params"}
OPERATORS: dict[type, Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult},
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one expression."""

    path: Path  # relative to the project
    line: int
    before: str
    after: str
    source: bytes  # the whole file, with the change


def changed(node: ast.expr) -> ast.expr | None:
    """Return another expression in the place of this one, or None if it is of a kind that is left alone."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    other: Any = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in OPERATORS:
        other.ops = [OPERATORS[type(other.ops[0])](), *other.ops[1:]]
    elif isinstance(other, ast.BoolOp | ast.BinOp) and type(other.op) in OPERATORS:
        other.op = OPERATORS[type(other.op)]()
    elif isinstance(other, ast.Constant) and isinstance(other.value, int):
        other.value = (not other.value) if isinstance(other.value, bool) else other.value + 1
    else:
        return None
    return cast(ast.expr, other)


def computed(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions within functions and classes; not those of annotations and formatted strings."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_constant = isinstance(node, ast.Module) and isinstance(child, ast.Assign | ast.AnnAssign)
            if isinstance(child, ast.AST) and not is_constant and name not in NOT_COMPUTED:
                yield from [child] if isinstance(child, ast.expr) else []
                yield from [] if isinstance(child, ast.JoinedStr) else computed(child)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every change of a file."""
    source = (ROOT / path).read_bytes()
    lines = source.splitlines(keepends=True)
    for node in computed(ast.parse(source)):
        other = changed(node)
        if other is not None and node.end_lineno is not None and node.end_col_offset is not None:
            begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
            end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
            after = ast.unparse(other)
            content = source[:begin] + f"({after})".encode() + source[end:]
            yield Mutant(path, node.lineno, ast.unparse(node), after, content)


def is_noticed(mutant: Mutant, checkout: Path) -> bool:
    """Return whether a test fails with this change."""
    name = ".".join(mutant.path.with_suffix("").parts)
    room = "/".join(part for part in mutant.path.parent.parts if part != "semsearch")
    near = sorted((checkout / "tests" / room).glob("test_*.py"))
    other = [test for test in (checkout / "tests").rglob("test_*.py") if test not in near and name in test.read_text()]
    (checkout / mutant.path).write_bytes(mutant.source)
    try:
        for tests in filter(None, (near, other)):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]
            if subprocess.run(command, cwd=checkout, capture_output=True, timeout=MOST_SECONDS).returncode:
                return True
    except subprocess.TimeoutExpired:
        return True
    finally:
        (checkout / mutant.path).write_bytes((ROOT / mutant.path).read_bytes())
    return False


def main() -> None:
    """Make a sample of all changes, one after the other, and print those that no test notices."""
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__)
    parser.add_argument("places", nargs="*", default=FOLDERS, help="folders of the code to change")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))  # the tests inherit it
    sources = [path.relative_to(ROOT) for place in options.places for path in sorted(ROOT.glob(f"{place}/**/*.py"))]
    found = [mutant for path in sources for mutant in mutants_of(path)]
    sample = random.Random(options.seed).sample(found, min(options.count, len(found)))
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".*_cache", ".venv", "build", "bundle"))
        for mutant in sample:
            if not is_noticed(mutant, checkout):
                print(f"{mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)


if __name__ == "__main__":
    main()
