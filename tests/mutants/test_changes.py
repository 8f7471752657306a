"""Changes of the code: their kinds, their names, and the list of those that change no answer."""

from pathlib import Path

import pytest

from tests.mutants.changes import Change, changes_of, function_lines, without_ignored

MODULE = Path("semsearch/shelf.py")


def changes(source: str) -> list[Change]:
    """Return the changes of a module."""
    return list(changes_of(MODULE, source.encode()))


def in_function(statement: str) -> set[str]:
    """Return how a function can differ that consists of one statement."""
    found = changes(f"def take(x, y):\n    {statement}\n")
    return {f"{change.before} -> {change.after}" for change in found}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("z = x < y", {"x < y -> (x <= y)"}),
        ("z = x and y", {"x and y -> (x or y)"}),
        ("z = not x", {"not x -> (x)"}),
        ("z = x + y", {"x + y -> (x - y)"}),
        ("z = x[1]", {"x[1] -> x[2]"}),
        ("x(y=True)", {"x(y=True) -> pass", "y=True -> y=False"}),
        ("z = x == 'a'", {"x == 'a' -> (x != 'a')", "x == 'a' -> x == 'a!'"}),
        ("z = x in ('a',)", {"x in ('a',) -> (x not in ('a',))", "('a',) -> ('a!',)"}),
        ("z = 1 if x else y", {"1 if x else y -> 2 if x else y", "x -> (not x)"}),
        ("return x", {"return x -> return None"}),
        ("raise x", {"raise x -> pass"}),
        ("x.y = y", {"x.y = y -> pass"}),
        ("x[y] = y", {"x[y] = y -> pass"}),
        ("x -= y", {"x -= y -> pass"}),
        ("z = [x for x in y if x]", {"x -> (not x)"}),
    ],
)
def test_an_expression_or_a_statement_is_changed(statement: str, expected: set[str]) -> None:
    assert in_function(statement) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "'text'",
        "z = 'text'",
        "z = 0.5",
        "z: 'x < 1' = x",
        "z = f'{x + 1}'",
        "return None",
        "z = zip(x, y, strict=True)",
    ],
)
def test_messages_floats_annotations_and_formatted_strings_are_left_alone(statement: str) -> None:
    assert in_function(statement) == set()


def test_a_constant_of_the_module_and_a_decorator_are_left_alone() -> None:
    assert changes("MOST = 3\n@limit(3)\ndef take(): ...\n") == []


def test_the_source_has_the_change_and_nothing_else() -> None:
    (change,) = changes("def ä(x):\n    # ä\n    return 2 * [\n        x < 3.5,  # ä\n    ]\n")[1:2]
    assert change.key == "semsearch/shelf.py ä: 2 * [ x < 3.5, # ä ] -> (2 + [x < 3.5])"
    assert change.source.decode() == "def ä(x):\n    # ä\n    return (2 + [x < 3.5])\n"


def test_a_change_keeps_its_key_when_other_code_moves_it() -> None:
    source = "class Shelf:\n    def take(self, x):\n        return x + 1 or x + 1\n"
    keys = [change.key for change in changes(source)]
    assert [change.key for change in changes("import os\n\n" + source)] == keys
    assert "semsearch/shelf.py Shelf.take: x + 1 -> (x - 1)" in keys
    assert "semsearch/shelf.py Shelf.take: x + 1 -> (x - 1) (2)" in keys


def test_a_change_has_the_lines_of_its_statement_unless_that_has_others_inside() -> None:
    source = "def take(x):\n    if x < 2.5:\n        return add(\n            x,\n            x < 1.5,\n        )\n"
    found = {change.before: change.lines for change in changes(source)}
    assert found["x < 2.5"] == range(2, 3)
    assert found["x < 1.5"] == range(3, 7)


def test_defaults_and_attributes_of_a_class_run_when_the_module_is_imported() -> None:
    source = "class Shelf:\n    size = 1\n    def take(self, x=2):\n        return x < 3.5\n"
    found = {change.before: change.at_import for change in changes(source)}
    assert found == {"size = 1": True, "2": True, "return x < 3.5": False, "x < 3.5": False}
    assert function_lines(source.encode()) == {4}


def test_the_changes_in_the_list_are_left_out_and_entries_that_match_none_are_returned() -> None:
    found = changes("def take(x):\n    return x\ndef give(x):\n    return x\n")
    listed = (
        "it changes nothing\n  semsearch/shelf.py take: return x -> return None\n  semsearch/shelf.py gone: x -> y\n"
    )
    others = "  semsearch/another.py take: x -> y\n"  # in a file that is not looked at
    kept, unknown = without_ignored(found, listed + others)
    assert [change.function for change in kept] == ["give"]
    assert unknown == ["semsearch/shelf.py gone: x -> y"]
