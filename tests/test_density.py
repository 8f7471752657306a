"""One idea a line: conditional expressions are rare, as in the projects that we learn from."""

import ast

from tests.project import ROOT

ROOMS = ("semsearch", "function", "export", "deploy")
MOST = 12  # conditional expressions in 1,000 lines; starlette has 6, httpx 9


def test_conditional_expressions_are_rare() -> None:
    expressions, lines, modules = 0, 0, []
    for path in [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]:
        source = path.read_text(encoding="utf-8")
        found = sum(isinstance(node, ast.IfExp) for node in ast.walk(ast.parse(source)))
        length = source.count("\n")
        expressions += found
        lines += length
        if found:
            modules.append((1000 * found / length, found, str(path.relative_to(ROOT))))
    assert 1000 * expressions / lines <= MOST, sorted(modules, reverse=True)[:20]
