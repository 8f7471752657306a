"""One idea a line: conditional expressions are rare, as in the projects that we learn from."""

import ast
from collections.abc import Iterator

from tests.project import ROOT

ROOMS = ("semsearch", "function", "export", "deploy")
MOST = 12  # conditional expressions in 1,000 lines; starlette has 6, httpx 9


def conditional_expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield `a if b else c`, and what stands in its place: `x and y or z`, `{True: a, False: b}[c]` and `(a, b)[c]`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield node
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            has_and = any(isinstance(each, ast.BoolOp) and isinstance(each.op, ast.And) for each in node.values[:-1])
            if has_and and not is_condition(node, tree):
                yield node
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict | ast.Tuple | ast.List):
            keys = node.value.keys if isinstance(node.value, ast.Dict) else []
            choices = len(keys) or len(node.value.elts if not isinstance(node.value, ast.Dict) else [])
            if choices == 2 and not isinstance(node.slice, ast.Constant):
                yield node


def is_condition(node: ast.BoolOp, tree: ast.AST) -> bool:
    """Return whether an `or` decides something, or is the result of a question, instead of choosing a value."""
    for parent in ast.walk(tree):
        if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and within(node, parent.test):
            return True
        if isinstance(parent, ast.comprehension) and any(within(node, test) for test in parent.ifs):
            return True
    last = node.values[-1]
    return isinstance(last, ast.Compare | ast.BoolOp | ast.UnaryOp) or (
        isinstance(last, ast.Call) and ast.unparse(last.func).rpartition(".")[2] in ("bool", "isinstance", "any", "all")
    )


def within(node: ast.AST, root: ast.AST) -> bool:
    return any(each is node for each in ast.walk(root))


def measure(folders: tuple[str, ...] = ROOMS) -> tuple[int, int, list[tuple[float, int, str]]]:
    """Return the conditional expressions, the lines, and for each module its share, its number and its path."""
    expressions, lines, modules = 0, 0, []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            found = len(list(conditional_expressions(ast.parse(source))))
            length = source.count("\n")
            expressions += found
            lines += length
            if found:
                modules.append((1000 * found / length, found, str(path.relative_to(ROOT))))
    return expressions, lines, sorted(modules, reverse=True)


def test_conditional_expressions_are_rare() -> None:
    expressions, lines, modules = measure()
    assert 1000 * expressions / lines <= MOST, modules[:20]


def test_it_counts_all_ways_to_choose_a_value() -> None:
    choices = "a = b if c else d\ne = f and g or h\ni = {True: j, False: k}[m]\nn = (o, p)[q]\n"
    assert len(list(conditional_expressions(ast.parse(choices)))) == 4
    assert not list(conditional_expressions(ast.parse("if r and s or t:\n    pass\n")))
