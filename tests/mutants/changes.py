"""Small changes of a module, one at a time: another comparison, a missing statement, `return None`.

Left alone are what seldom changes an answer, or is stated once: the wording of messages, floats (mostly weights),
module constants, annotations, decorators and formatted strings.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

LONGEST = 90  # maximum characters of the code that is displayed
NOT_COMPUTED = {"annotation", "returns", "decorator_list", "type_params"}
NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OPERATORS: dict[type, Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a module."""

    path: Path  # relative to the project
    function: str  # the names of the classes and functions around it
    lines: range  # those of its statement; if that has others inside, those of the changed code
    at_import: bool  # whether the code runs when the module is imported
    before: str
    after: str
    nth: int  # its number among equal changes of the function, from 1
    source: bytes  # the whole module, with the change

    @property
    def key(self) -> str:
        """Return a name that stays the same when other code moves this to another line."""
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.path.as_posix()} {self.function}: {self.before} -> {self.after}{nth}"


def executed(node: ast.AST, parents: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Yield the nodes below this one that a program executes, each with its parents, the outermost first."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_constant = isinstance(node, ast.Module) and isinstance(child, ast.Assign | ast.AnnAssign)
            is_strict = isinstance(child, ast.keyword) and child.arg == "strict"  # an assertion of `zip`
            if isinstance(child, ast.AST) and not is_constant and not is_strict and field not in NOT_COMPUTED:
                yield child, (*parents, node)
                if not isinstance(child, ast.JoinedStr):
                    yield from executed(child, (*parents, node))


def runs_at_import(parents: tuple[ast.AST, ...]) -> bool:
    """Return whether a node with these parents runs when its module is imported, as defaults of arguments do."""
    pairs = zip(parents, (*parents[1:], None), strict=True)
    return not any(isinstance(parent, FUNCTIONS) and not isinstance(below, ast.arguments) for parent, below in pairs)


def other_code(node: ast.AST, parents: tuple[ast.AST, ...]) -> str | None:
    """Return what replaces the code of a node, or None if it is left alone."""
    match node:
        case ast.Constant(value=bool(truth)):
            return str(not truth)
        case ast.Constant(value=int(number)):
            return str(number + 1)
        case ast.Constant(value=str(text)) if is_compared(parents):
            return repr(text + "!")
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return ast.unparse(operand)
        case ast.Compare(left=left, ops=[first, *others], comparators=right) if type(first) in OPERATORS:
            return ast.unparse(ast.Compare(left, [OPERATORS[type(first)](), *others], right))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            return ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))
        case ast.BoolOp(op=operator, values=values):
            return ast.unparse(ast.BoolOp(OPERATORS[type(operator)](), values))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete() | ast.Continue():
            return "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return "pass"
        case ast.Name() | ast.Attribute() | ast.Call() if is_condition(node, parents[-1]):
            return f"not {ast.unparse(node)}"
    return None


def is_compared(parents: tuple[ast.AST, ...]) -> bool:
    """Return whether a text is compared or is a key, as in `x == "a"`, `x in ("a", "b")`, `x["a"]` and `case "a"`."""
    nearest = parents[-1]
    if isinstance(nearest, ast.Tuple | ast.Set | ast.List):
        nearest = parents[-2]
    return isinstance(nearest, ast.Compare | ast.Subscript | ast.MatchValue)


def is_condition(node: ast.AST, parent: ast.AST) -> bool:
    """Return whether the branch taken depends on this expression alone."""
    conditions = getattr(parent, "ifs", [getattr(parent, "test", None)])
    return any(node is condition for condition in conditions) and "TYPE_CHECKING" not in ast.unparse(node)


def displayed(code: bytes) -> str:
    """Return code in one line that is not too long."""
    line = " ".join(code.decode().split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def changes_of(path: Path, source: bytes) -> Iterator[Change]:
    """Yield every change of a module."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def extent(node: Any) -> slice:
        return slice(starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)

    seen = Counter[tuple[str, str, str]]()
    for node, parents in executed(ast.parse(source)):
        code = other_code(node, parents)
        if code is None:
            continue
        old = shown = extent(node)
        if isinstance(node, ast.Constant):  # the number 1 alone would say little
            around = next(parent for parent in reversed(parents) if hasattr(parent, "lineno"))
            is_block = isinstance(around, ast.stmt) and hasattr(around, "body")
            if not is_block and extent(around).stop - extent(around).start <= LONGEST:
                shown = extent(around)
        elif isinstance(node, ast.expr):
            code = f"({code})"
        before = displayed(source[shown])
        after = displayed(source[shown.start : old.start] + code.encode() + source[old.stop : shown.stop])
        function = ".".join(parent.name for parent in parents if isinstance(parent, NAMED))
        seen[function, before, after] += 1
        whole: Any = next(parent for parent in (node, *reversed(parents)) if isinstance(parent, ast.stmt))
        if hasattr(whole, "body") or hasattr(whole, "cases"):
            whole = node
        yield Change(
            path=path,
            function=function,
            lines=range(whole.lineno, whole.end_lineno + 1),
            at_import=runs_at_import(parents),
            before=before,
            after=after,
            nth=seen[function, before, after],
            source=source[: old.start] + code.encode() + source[old.stop :],
        )


def function_lines(source: bytes) -> set[int]:
    """Return the lines of a module that do not run when it is imported."""
    found = executed(ast.parse(source))
    return {node.lineno for node, parents in found if isinstance(node, ast.stmt) and not runs_at_import(parents)}


def without_ignored(changes: list[Change], ignored: str) -> tuple[list[Change], list[str]]:
    """Return the changes that are not in the list of those that change no answer, and its entries that match none.

    In the list, an indented line is the key of a change, and the line above that is not indented is the reason.
    """
    entries = [line.strip() for line in ignored.splitlines() if line.startswith(" ")]
    keys, paths = {change.key for change in changes}, {change.path.as_posix() for change in changes}
    unknown = [entry for entry in entries if entry not in keys and entry.partition(" ")[0] in paths]
    return [change for change in changes if change.key not in entries], unknown
