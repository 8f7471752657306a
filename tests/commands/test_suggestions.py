"""Each command that a message or a docstring names exists, with its options, and begins with `semsearch`."""

import ast
import re
import shlex
from collections.abc import Iterator

import cyclopts

from semsearch.commands.main import app, parse
from tests.project import ROOT

QUOTED = re.compile(r"`(semsearch [a-z][^`]*)`")
PLACEHOLDER = "PLACE"  # in place of a value that the code inserts


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module, with PLACEHOLDER for what an f-string inserts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def suggested_by(tree: ast.AST) -> Iterator[str]:
    """Yield the commands that a module makes with `suggested`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "suggested":
            words = [word.value if isinstance(word, ast.Constant) else PLACEHOLDER for word in node.args]
            yield shlex.join(["semsearch", *map(str, words)])


def found_commands() -> set[str]:
    commands = set[str]()
    for folder in ("semsearch", "function", "export"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            commands.update(suggested_by(tree))
            for text in texts_of(tree):
                commands.update(" ".join(command.split()) for command in QUOTED.findall(text))
    return commands


def test_each_command_that_is_named_can_be_parsed() -> None:
    commands = found_commands()
    assert len(commands) > 20
    problems = {command: problem_of(app, shlex.split(command.removeprefix("semsearch "))) for command in commands}
    assert {command: problem for command, problem in problems.items() if problem is not None} == {}


def problem_of(program: cyclopts.App, words: list[str]) -> str | None:
    """Return why words cannot be parsed, None if they can. A place can be left out in a sentence, a value cannot."""
    try:
        parse(words, program)
    except cyclopts.MissingArgumentError as error:
        if error.argument is None or any(name.startswith("--") for name in error.argument.names):
            return str(error)
    except cyclopts.CycloptsError as error:
        return str(error)
    return None
