"""Each field of a request has plain examples in each mode in which it has an effect."""

from collections.abc import Callable

import pytest

from tests.promises.table import HOLE, PAGE, columns_of

SCRIPT = "import json; from tests.promises.table import count_examples, page; print(json.dumps(page(count_examples())))"


def test_each_field_has_an_example_where_it_has_an_effect(in_a_new_process: Callable[[str], str]) -> None:
    written = in_a_new_process(SCRIPT)
    assert [line for line in written.splitlines() if HOLE in line] == []
    assert written == PAGE.read_text("utf-8")  # `python -m tests.promises.table` writes it


@pytest.mark.parametrize(
    ("field", "columns"),
    [
        ("text", "semantic keyword hybrid"),
        ("offset", "semantic keyword hybrid id listing"),
        ("exact", "semantic hybrid id"),
        ("prefix", "keyword hybrid"),
        ("without", "keyword hybrid id"),
        ("group_size", "semantic keyword hybrid id"),
        ("highlights", "semantic keyword hybrid id listing"),
    ],
)
def test_the_documentation_says_where_a_field_has_an_effect(field: str, columns: str) -> None:
    assert columns_of(field) == columns.split()
