"""Each command that a message or a docstring names exists, with its options, and begins with `semsearch`."""

import ast
import re
import shlex
from collections.abc import Iterator

import cyclopts
import pytest

from semsearch.commands.main import app
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


@pytest.mark.parametrize("command", sorted(found_commands()))
def test_a_command_that_is_named_can_be_parsed(command: str) -> None:
    words = shlex.split(command.removeprefix("semsearch "))
    try:
        app.parse_args(words, exit_on_error=False, print_error=False)
    except cyclopts.MissingArgumentError as error:
        if lacks_value(error):
            raise


def lacks_value(error: cyclopts.MissingArgumentError) -> bool:
    """Return whether an option has no value; a place can be left out in a sentence."""
    return error.argument is None or any(name.startswith("--") for name in error.argument.names)
