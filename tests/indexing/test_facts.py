"""The facts of the values of the metadata, against the values that a column of each type stores."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.indexing.facts import (
    FITS,
    SAME_JSON,
    Facts,
    count_facts,
    numbers_dtype,
    read_facts,
    stored_values,
    update_facts,
)

STRINGS = ["a", "", "tea", "null", "NaN", "Infinity", "nan", "1e400", "-1e400", "5", " 7\n", "-0", "1.10", "1e3", "007"]
STRINGS += ["+5", "- 5", "٣", "true", "True", "FALSE ", "\ttRue", "truely", "2024-05-31", "2024-02-30", "20240531"]
STRINGS += ["2024-W22", "2024-05-31T12:00Z", " 2024-05-31", "[]", '[1, "a"]', " [1, null]", '["a"]', "[", "[1e400]"]
NUMBERS = [0, -1, 0.5, -0.0, 2**53, 2**53 + 1, 2**63, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, 1e300, 10**400, 1e400]
LISTS = [[], [None], ["a"], ["a", 1], [1, 0.5], [True], [[1]], [1e400], [2**53 + 1], [0.5] * 101]
VALUES = [*STRINGS, *map(str, NUMBERS), *NUMBERS, *LISTS, True, False, None, {}, {"a": 1}]


def facts_of(*rows: dict[str, Any]) -> Facts:
    return read_facts(map(json.dumps, rows))


def shown(facts: Facts) -> dict[str, list[int]]:
    return {name: column.tolist() for name, column in facts.items()}


@given(st.sampled_from(VALUES) | st.text(st.sampled_from('tTrRuUeE19.-+ ["]'), max_size=5))
def test_a_value_fits_the_types_that_store_it(value: object) -> None:
    value = json.loads(json.dumps(value))
    (facts,) = facts_of({"a": value})["a"].tolist()
    fitting = {kind for kind in FITS if stored_values(kind, value) is not None}
    assert {kind for kind, bit in FITS.items() if facts & bit} == fitting


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0], "int64"),
        ([2**63 - 1, -(2**63)], "int64"),
        ([1.0, -(2.0**63)], "int64"),
        ([[], [1, 2**63 - 1]], "int64"),
        ([2**63], "uint64"),
        ([2**64 - 1, 2**53 + 1, 2.0**63], "uint64"),
        ([[2**63, 0], [-1]], "float64"),
        ([2**64], "float64"),
        ([-(2**63) - 2**11, 0.5], "float64"),
        ([2**53, 0.5], "float64"),
        ([2**53 + 1, 0.5], None),
        ([[2**53 + 1, 0.5]], None),
        ([2**64 - 1, -1], None),
        ([-(2**63) - 1], None),
        ([10**400], None),
    ],
    ids=str,
)
def test_numbers_have_the_first_dtype_that_holds_all_of_them_exactly(values: list[Any], dtype: str | None) -> None:
    for written in (values, [json.dumps(value) for value in values]):
        different = count_facts(facts_of(*({"a": value} for value in written))["a"])
        assert numbers_dtype(different) == dtype


def test_facts_are_counted_without_rows_that_have_no_value() -> None:
    column = facts_of({}, {"a": 1}, {"a": "x"}, {"a": 2}, {"b": 0})["a"]
    assert count_facts(column) == {int(column[1]): 2, int(column[2]): 1}


@pytest.mark.parametrize(
    ("string", "is_same"),
    [("5", True), ("-2.5", True), ("1e+22", True), ("1.10", False), ("1e3", False), (" 5", False), ("-0", False)],
)
def test_a_string_is_a_number_whose_json_is_written_the_same(string: str, is_same: bool) -> None:
    column = facts_of({"a": string})["a"]
    assert bool(column[0] & SAME_JSON) == is_same


def test_facts_of_rows_that_stay_are_those_of_the_older_rows() -> None:
    rows: list[dict[str, Any]] = [{"a": "x", "gone": 1}, {"a": 2}, {"b": True}, {}]
    new: list[dict[str, Any]] = [{"c": []}, {"b": "y"}]
    found = update_facts(facts_of(*rows), np.array([-1, 1, 3, 2, -1]), facts_of(*new))
    assert shown(found) == shown(facts_of(new[0], rows[1], rows[3], rows[2], new[1]))
    assert found.keys() == {"a", "b", "c"}
    assert update_facts(facts_of(*rows), np.array([3]), {}) == {}


@given(st.data())
def test_an_update_of_facts_equals_facts_of_all_rows(data: st.DataObject) -> None:
    rows = st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", 1, "2024-05-31"])), max_size=6)
    older, new = data.draw(rows), data.draw(rows)
    order = data.draw(st.permutations([*range(len(older)), *[-1] * len(new)]))[: data.draw(st.integers(0, 12))]
    added = iter(new)
    whole = [older[row] if row >= 0 else next(added) for row in order]
    parts = facts_of(*older), np.array(order, np.intp), facts_of(*new[: order.count(-1)])
    assert shown(update_facts(*parts)) == shown(facts_of(*whole))
