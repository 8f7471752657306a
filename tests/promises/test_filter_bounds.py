"""Filters that compare, at the bound and beside it, for columns of each type and both ways in which they are stored."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from semsearch import Search
from tests.bundle_files import column_of
from tests.promises.conftest import SearchOf, ids_of

LARGEST = sys.float_info.max
# ascending values of each column: d is the bound in the middle, c and e are as close to it as the type allows
STEPS: dict[str, Sequence[Any]] = {
    "whole": [-(2**63), 0, 2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**63 - 1],
    "unsigned": [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1],
    "fraction": [-LARGEST, -2.5, 2.4999999999999996, 2.5, 2.5000000000000004, 3.0, LARGEST],
    "tiny": [-LARGEST, -5e-324, 0.0, 5e-324, 1e-323, 0.5, LARGEST],
    "word": ["", "a", "ab", "abc", "abcd", "ac", "🦆"],
    "day": [
        "0001-01-01T00:00:00+14:00",
        "1969-12-31",
        "2024-02-28T23:59:59.999999Z",
        "2024-02-29",
        "2024-02-29T02:00:00.000001+02:00",
        "2024-03-01",
        "9999-12-31T23:59:59.999999-12:00",
    ],
    "words": [[word] for word in ("", "a", "ab", "abc", "abcd", "ac", "🦆")],
    "sizes": [[-LARGEST], [-2.5], [2.4999999999999996], [2.5], [2.5000000000000004], [3.0], [LARGEST]],
}
ROWS: list[dict[str, Any]] = [
    {"id": id} | {name: values[place] for name, values in STEPS.items()} for place, id in enumerate("abcdefg")
]
NONE = {"id": "-"}  # a row without a value
COPIES = {"each value in its row": 1, "a dictionary of values": 3}

# what each operator keeps with the bound of the first row, of the one in the middle, and of the last one
KEPT = {
    "$lt": {"a": "", "d": "abc", "g": "abcdef"},
    "$lte": {"a": "a", "d": "abcd", "g": "abcdefg"},
    "$eq": {"a": "a", "d": "d", "g": "g"},
    "$ne": {"a": "bcdefg-", "d": "abcefg-", "g": "abcdef-"},
    "$gte": {"a": "abcdefg", "d": "defg", "g": "g"},
    "$gt": {"a": "bcdefg", "d": "efg", "g": ""},
}


@pytest.fixture(scope="module", params=COPIES)
def steps(request: pytest.FixtureRequest, search_of: SearchOf) -> Search:
    """The index of ROWS. Where they are there more than once, filters look a bound up among the different values."""
    return search_of([*ROWS, NONE] * COPIES[request.param])


def kept(search: Search, condition: dict[str, Any]) -> str:
    """Return the ids that a filter keeps, in the order of the rows, without those of the copies."""
    ids, copies = ids_of(search.search(filter=condition, top_k=100)), len(search) // 8
    once = ids[: len(ids) // copies]
    assert ids == once * copies
    return "".join(once)


@pytest.mark.parametrize("column", STEPS)
@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [
        pytest.param(operator, bound, ids, marks=pytest.mark.promise(f"filter.{operator}"), id=f"{operator} {bound}")
        for operator, by_bound in KEPT.items()
        for bound, ids in by_bound.items()
    ],
)
def test_a_comparison_keeps_the_rows_on_its_side_of_the_bound(
    steps: Search, column: str, operator: str, bound: str, expected: str
) -> None:
    value = STEPS[column]["abcdefg".index(bound)]
    (operand,) = value if isinstance(value, list) else [value]
    assert kept(steps, {column: {operator: operand}}) == expected


@pytest.mark.parametrize("name", STEPS)
def test_the_columns_of_these_examples_are_stored_in_both_ways(name: str) -> None:
    kinds = {"word": "string", "day": "date", "words": "list", "sizes": "numbers"}
    for copies in COPIES.values():
        column = column_of([*STEPS[name], None] * copies, kinds.get(name, "number"))
        has_dictionary = copies > 1 or kinds.get(name) in ("string", "list", "numbers")
        assert (column.codes is not None) == has_dictionary


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"whole": {"$gt": 2.0**53}}, "defg"),
        ({"whole": {"$gte": 0.5}}, "cdefg"),
        ({"whole": {"$lt": 0.5}}, "ab"),
        ({"whole": {"$lte": -0.5}}, "a"),
        ({"whole": {"$gt": 2**63}}, ""),
        ({"whole": {"$lt": 10**400}}, "abcdefg"),
        ({"whole": 0.5}, ""),
        ({"whole": {"$in": [0.5, 2**63, -(10**400)]}}, ""),
        ({"fraction": {"$gt": 2}}, "cdefg"),
        ({"fraction": {"$gte": 3}}, "fg"),
        ({"fraction": {"$lte": 3}}, "abcdef"),
        ({"fraction": {"$gt": 10**400}}, ""),
        ({"fraction": {"$gte": -(10**400)}}, "abcdefg"),
        ({"fraction": 3}, "f"),
        ({"word": {"$gt": "aa"}}, "cdefg"),
        ({"word": {"$lt": "ab\x00"}}, "abc"),
        ({"word": {"$gte": "abce"}}, "fg"),
        ({"day": {"$lt": "2024-02-29T00:00:00.000001Z"}}, "abcd"),
        ({"day": {"$gte": "2024-02-29T00:00:00.000001Z"}}, "efg"),
        ({"day": "2024-02-29T01:00:00+01:00"}, "d"),
    ],
    ids=str,
)
@pytest.mark.promise("filter")
def test_a_bound_that_no_row_has_is_between_two_rows(steps: Search, condition: dict[str, Any], expected: str) -> None:
    assert kept(steps, condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"fraction": {"$gte": 2.5, "$lt": 3.0}}, "de"),
        ({"fraction": {"$gt": 2.5, "$lte": 3.0}}, "ef"),
        ({"fraction": {"$gte": 2.5, "$lte": 2.5}}, "d"),
        ({"fraction": {"$gte": 2.5, "$lt": 2.5}}, ""),
        ({"whole": {"$gte": 0, "$lt": 2**62}}, "bcde"),
        ({"word": {"$gte": "a", "$lt": "b"}}, "bcdef"),
        ({"day": {"$gte": "2024-02-29", "$lt": "2024-03-01"}}, "de"),
        ({"day": {"$gte": "2024-02-29", "$lt": "2024-03-01"}, "word": {"$gt": "abc"}}, "e"),
    ],
    ids=str,
)
@pytest.mark.promise("filter")
def test_a_range_has_the_bounds_that_its_operators_include(
    steps: Search, condition: dict[str, Any], expected: str
) -> None:
    assert kept(steps, condition) == expected


def eight_rows(numbers: list[float], copies: int) -> list[dict[str, Any]]:
    """Return eight numbers as rows, which are stored with a dictionary if there are copies of them."""
    assert (column_of(numbers * copies, "number").codes is not None) == (copies > 1)
    return [{"id": id, "x": number} for id, number in zip("abcdefgh", numbers, strict=True)] * copies


# no float64 is 2**53 + 1 or 2**53 + 3: the first is rounded down to b, the second up to d
LARGE = [0.5, 2.0**53, 2.0**53 + 2, 2.0**53 + 4, 2.0**53 + 6, 2.0**54, 2.0**55, 2.0**56]
KEPT_BETWEEN = {"$lt": ("ab", "abc"), "$lte": ("ab", "abc"), "$eq": ("", ""), "$gte": ("cdefgh", "defgh")}
KEPT_BETWEEN |= {"$ne": ("abcdefgh", "abcdefgh"), "$gt": KEPT_BETWEEN["$gte"]}


@pytest.fixture(scope="module", params=COPIES)
def large(request: pytest.FixtureRequest, search_of: SearchOf) -> Search:
    return search_of(eight_rows(LARGE, COPIES[request.param]))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [pytest.param(each, ids, marks=pytest.mark.promise(f"filter.{each}")) for each, ids in KEPT_BETWEEN.items()],
)
def test_a_whole_number_that_no_float_is_lies_between_two_floats(
    large: Search, operator: str, expected: tuple[str, str]
) -> None:
    found = [kept(large, {"x": {operator: bound}}) for bound in (2**53 + 1, 2**53 + 3)]
    assert found == [*expected]


ZEROS = [-1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.5, 2.0]
KEPT_AT_ZERO = {"$lt": "ab", "$lte": "abcd", "$eq": "cd", "$ne": "abefgh", "$gte": "cdefgh", "$gt": "efgh"}


@pytest.fixture(scope="module", params=COPIES)
def zeros(request: pytest.FixtureRequest, search_of: SearchOf) -> Search:
    return search_of(eight_rows(ZEROS, COPIES[request.param]))


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        pytest.param(operator, expected, marks=pytest.mark.promise(f"filter.{operator}"))
        for operator, expected in KEPT_AT_ZERO.items()
    ],
)
def test_zero_and_negative_zero_are_equal(zeros: Search, operator: str, zero: float, expected: str) -> None:
    assert kept(zeros, {"x": {operator: zero}}) == expected


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
@pytest.mark.promise("filter.$in")
def test_zero_in_a_list_finds_negative_zero(zeros: Search, zero: float) -> None:
    assert kept(zeros, {"x": {"$in": [zero]}}) == "cd"
