"""Filters against a reading of the same grammar in plain Python, row by row."""

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from semsearch.engine.metadata.columns import FEW, LIST_TYPES, Columns, IdColumn
from semsearch.engine.metadata.filters import MOST_FILTER_VALUES, MOST_LEVELS, FilterError, allowed_rows, count_values
from semsearch.engine.tensors import Strings
from tests.bundle_files import tensors_of

KINDS = {"author": "string", "year": "number", "price": "number", "is_new": "boolean", "told": "date"}
KINDS |= {"tags": "list", "sizes": "numbers"}
WORDS = ["", "a", "ab", "b", "żółw", "🦆", "WORLD"]
DATES = ["1969-12-31", "2024-02-29", "2024-02-29T00:00:01Z", "2024-02-29T01:00:00+01:00", "2024-03-01T12:00:00.000001"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "author": st.sampled_from(WORDS),
    "year": st.integers(2019, 2024) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1]),
    "price": st.sampled_from([-1.5, 0.0, 1, 2, 2.5, 2**64, 1e300]),
    "is_new": st.booleans(),
    "told": st.sampled_from(DATES),
    "tags": st.sampled_from(WORDS),
    "sizes": st.sampled_from([38, 38.5, -1.0, 2**53]),
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def comparable(kind: str, value: Any) -> Any:
    """Return what Python compares as the type does: moments for dates."""
    if kind != "date":
        return value
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def holds(condition: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Say whether a filter keeps a row, member by member."""
    for name, value in condition.items():
        if name == "$and":
            passes = all(holds(each, metadata) for each in value)
        elif name == "$or":
            passes = any(holds(each, metadata) for each in value)
        elif name == "$not":
            passes = not holds(value, metadata)
        else:
            operators = value if isinstance(value, dict) else {"$eq": value}
            passes = all(column_holds(name, each, operand, metadata) for each, operand in operators.items())
        if not passes:
            return False
    return True


def column_holds(name: str, comparison: str, operand: Any, metadata: Mapping[str, Any]) -> bool:
    kind = KINDS[name]
    stored = metadata.get(name, [])
    found = [comparable(kind, value) for value in (stored if isinstance(stored, list) else [stored])]
    match comparison:
        case "$exists":
            return (name in metadata) == bool(operand)
        case "$in" | "$nin":
            wanted = [comparable(kind, value) for value in operand]
            return any(value in wanted for value in found) == (comparison == "$in")
        case "$startsWith":
            return any(value.startswith(operand) for value in found)
        case "$eq" | "$ne":
            return (comparable(kind, operand) in found) == (comparison == "$eq")
    return any(COMPARED[comparison](value, comparable(kind, operand)) for value in found)


class Stored(NamedTuple):
    """An operand that is a value of the rows: one of the column's values or, if it has none, `other`."""

    column: str
    place: int  # among the column's values, modulo their number
    other: Any


def one_column(name: str) -> st.SearchStrategy[dict[str, Any]]:
    operand = VALUES[name]
    if KINDS[name] in ("number", "numbers"):
        operand = operand | st.sampled_from([2020.0, 2020.5, 0, -0.0, 2**53 + 1, 2**63, 2**70, -(2**70), 1.5e300])
    operand = st.builds(Stored, st.just(name), st.integers(0, 29), VALUES[name]) | st.one_of([operand])
    several = st.lists(operand, max_size=12)
    operands = dict.fromkeys(("$eq", "$ne", *COMPARED), operand)
    operands |= {"$in": several, "$nin": several, "$exists": st.booleans()}
    if KINDS[name] in ("string", "list"):
        operands["$startsWith"] = st.sampled_from([*WORDS, "ż", "żó", "WO", "aba", "WORLDS", "\ud83e", "\x00"])
    one_operator = [st.fixed_dictionaries({each: values}) for each, values in operands.items()]
    some_operators = st.fixed_dictionaries({}, optional=operands).filter(bool)
    return st.fixed_dictionaries({name: st.one_of(operand, *one_operator, some_operators)})


def with_stored(condition: Any, rows: list[dict[str, Any]]) -> Any:
    """Return a filter with values of the rows in place of `Stored`."""
    if isinstance(condition, dict):
        return {name: with_stored(value, rows) for name, value in condition.items()}
    if isinstance(condition, Stored):
        found = [row[condition.column] for row in rows if condition.column in row]
        values = [each for value in found for each in (value if isinstance(value, list) else [value])]
        return values[condition.place % len(values)] if values else condition.other
    if isinstance(condition, list):
        return [with_stored(value, rows) for value in condition]
    return condition


one_filter = st.one_of([one_column(name) for name in KINDS])
filters = st.recursive(
    one_filter,
    lambda inner: st.builds(
        lambda pair, more: pair | more,
        st.fixed_dictionaries({}, optional={"$and": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"$not": inner}),
        one_filter | st.just({}),
    ),
    max_leaves=6,
)
in_rows = VALUES | {name: st.lists(VALUES[name], max_size=3) for name, kind in KINDS.items() if kind in LIST_TYPES}
metadata_rows = st.lists(st.fixed_dictionaries({}, optional=in_rows), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filters") / "columns.safetensors"


def columns_of(path: Path, rows: list[dict[str, Any]]) -> Columns:
    save_file(tensors_of(rows, KINDS), path)
    return Columns(path, KINDS, len(rows))


@settings(max_examples=max(150, settings().max_examples))
@given(rows=metadata_rows, drawn=one_filter | filters)
def test_a_filter_keeps_what_python_keeps(scratch: Path, rows: list[dict[str, Any]], drawn: dict[str, Any]) -> None:
    condition = with_stored(drawn, rows)
    mask = allowed_rows(condition, columns_of(scratch, rows))
    assert mask.tolist() == [holds(condition, row) for row in rows]


ROWS: list[dict[str, Any]] = [
    {"author": "ann", "year": 2019, "tags": ["sea", "war"], "told": "2024-01-31", "is_new": True},
    {"author": "bob", "year": 2020, "tags": [], "told": "2024-01-31T12:00:00+02:00", "is_new": False},
    {"author": "eve", "year": 2021, "tags": ["war"]},
    {},
]


OPERATORS = "one of $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $startsWith, $exists"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"autor": "ann"}, "filter: expected the name of a column, $and, $or or $not, found 'autor'"),
    ({"year": "2020"}, "filter.year: expected a number, or an object of operators, found '2020'"),
    ({"year": {"$gt": float("nan")}}, "filter.year.$gt: expected a number, found nan"),
    ({"year": {"$in": [2020, "x"]}}, "filter.year.$in.1: expected a number, found 'x'"),
    ({"year": {"$nin": 2020}}, "filter.year.$nin: expected a list of values, found 2020"),
    ({"year": {"$like": 2}}, f"filter.year: expected {OPERATORS}, found '$like'"),
    ({"year": {}}, f"filter.year: expected at least {OPERATORS}, found {{}}"),
    ({"year": {"$exists": 1}}, "filter.year.$exists: expected true or false, found 1"),
    ({"author": {"$startsWith": 5}}, "filter.author.$startsWith: expected a string, found 5"),
    ({"year": {"$startsWith": 2}}, "filter.year.$startsWith: expected a column of strings or lists, found 'number'"),
    ({"is_new": 1}, "filter.is_new: expected true or false, or an object of operators, found 1"),
    ({"tags": {"$eq": ["sea"]}}, "filter.tags.$eq: expected a string, found ['sea']"),
    ({"told": {"$lt": "May"}}, "filter.told.$lt: expected an ISO 8601 date or time, such as 2024-05-31 or"),
    (
        {"author": "a" * 65_537},
        "filter.author: expected at most 65536 characters, found 'aaaaaaaa",
    ),
    ({"tags": {"$in": ["a" * 65_536, "a" * 65_537]}}, "filter.tags.$in.1: expected at most 65536 characters, found "),
    ({"told": {"$lt": "2024" * 65_537}}, "filter.told.$lt: expected at most 65536 characters, found '2024"),
    ({"$and": {"year": 1}}, "filter.$and: expected a list of filters, not an empty one, found {'year': 1}"),
    ({"$or": []}, "filter.$or: expected a list of filters, not an empty one, found []"),
    ({"$or": [{}, 5]}, "filter.$or.1: expected an object, found 5"),
    ({"$or": [{}, {"year": {"$gt": ""}}]}, "filter.$or.1.year.$gt: expected a number, found ''"),
]


@pytest.mark.parametrize(("condition", "message"), REFUSED, ids=str)
@pytest.mark.promise("filter")
def test_a_wrong_filter_is_refused_with_the_place(tmp_path: Path, condition: dict[str, Any], message: str) -> None:
    with pytest.raises(FilterError, match=re.escape(message)):
        allowed_rows(condition, columns_of(tmp_path / "columns", ROWS))


@pytest.mark.parametrize("name", [*KINDS, "id"])
@pytest.mark.promise("filter.$in")
@pytest.mark.promise("filter.$nin")
def test_no_row_is_in_an_empty_list(tmp_path: Path, name: str) -> None:
    ids = Strings(np.frombuffer(b"abcd", np.uint8), np.arange(5, dtype=np.uint64))
    save_file(tensors_of(ROWS, KINDS), tmp_path / "columns")
    columns = Columns(tmp_path / "columns", KINDS, len(ROWS), lambda: IdColumn(ids))
    for condition, kept in (
        ({name: {"$in": []}}, False),
        ({name: {"$nin": []}}, True),
        ({"$not": {name: {"$in": []}}}, True),
        ({"$or": [{name: {"$in": []}}, {name: {"$nin": []}}]}, True),
    ):
        assert allowed_rows(condition, columns).tolist() == [kept] * 4, condition


@pytest.mark.parametrize("words", [257, 70_000])
def test_beginnings_are_found_among_many_words(tmp_path: Path, words: int) -> None:
    values = [chr(0x10FFFF - word % 7) * (word % 3) + str(word) for word in range(words)]
    columns = columns_of(tmp_path / "columns", [{"author": value} for value in values])
    for start in ("", "1", "25", "6999", chr(0x10FFFF), chr(0x10FFFF) * 2, chr(0x10FFFE) + "1", "9" * 9):
        kept = allowed_rows({"author": {"$startsWith": start}}, columns)
        assert kept.tolist() == [value.startswith(start) for value in values]


def nested(levels: int, *operators: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"author": "ann"}
    for level in range(levels - 1):
        operator = operators[level % len(operators)]
        condition = {operator: condition if operator == "$not" else [condition]}
    return condition


@pytest.mark.parametrize("operators", [("$and", "$or"), ("$not", "$not", "$or")])
@pytest.mark.promise("filter.$and")
@pytest.mark.promise("filter.$or")
def test_filters_may_be_nested_so_deep_and_no_deeper(tmp_path: Path, operators: tuple[str, ...]) -> None:
    columns = columns_of(tmp_path / "columns", ROWS)
    is_found = nested(MOST_LEVELS, *operators).keys() != {"$not"}
    assert allowed_rows(nested(MOST_LEVELS, *operators), columns).tolist() == [is_found, *[not is_found] * 3]
    for levels in (MOST_LEVELS + 1, 480):
        with pytest.raises(FilterError, match=r"expected at most 8 filters within each other, found {"):
            allowed_rows(nested(levels, *operators), columns)


@pytest.mark.promise("filter.$eq")
def test_a_half_surrogate_equals_no_string(tmp_path: Path) -> None:
    assert not allowed_rows({"author": "\ud800"}, columns_of(tmp_path / "columns", ROWS)).any()


EDGES = [0, 2**52, 2**53, 2**62, 2**63, 2**64, 2**70, 10**30]
EDGES = [sign * edge + step for edge in EDGES for sign in (1, -1) for step in (-2, -1, 0, 1, 2)]
INTS = st.sampled_from(EDGES)
FLOATS = INTS.map(float) | st.sampled_from([0.5, -0.5, 2.0**52 - 0.5, 1e300, -1e300, 5e-324])


def fits_a_dtype(numbers: list[float]) -> bool:
    """Say by Python's exact comparison whether int64, uint64 or float64 has all these numbers."""
    are_whole = all(number == int(number) for number in numbers)
    ranges = (-(2**63), 2**63 - 1), (0, 2**64 - 1)
    in_a_range = any(all(least <= number <= most for number in numbers) for least, most in ranges)
    return (are_whole and in_a_range) or all(float(number) == number for number in numbers)


@given(
    numbers=st.one_of(
        [
            st.lists(each, min_size=1, max_size=4)
            for each in (INTS, FLOATS, FLOATS | st.integers(-9, 9), INTS.filter(lambda number: 0 <= number < 2**64))
        ]
    ),
    more=st.lists(INTS | FLOATS | st.just(10**400), min_size=1, max_size=12),
    place=st.integers(0, 7),
    times=st.sampled_from([1, 40]),
)
def test_numbers_compare_as_in_python(
    scratch: Path, numbers: list[float], more: list[float], place: int, times: int
) -> None:
    wanted = [*numbers[place : place + 1], *more]  # the first one is a stored number or another one
    rows = [{"year": number} for number in numbers] * times
    assume(fits_a_dtype(numbers))  # the export refuses others
    columns = columns_of(scratch, rows)
    operators: list[dict[str, Any]] = [{each: wanted[0]} for each in ("$eq", "$ne", *COMPARED)]
    for condition in ({"year": each} for each in [*operators, {"$in": wanted}, {"$nin": wanted}]):
        assert allowed_rows(condition, columns).tolist() == [holds(condition, row) for row in rows], condition


@pytest.mark.parametrize("count", [FEW, FEW + 1])
@pytest.mark.promise("filter.$in")
def test_a_list_of_many_stored_values_keeps_the_rows_with_one_of_them(tmp_path: Path, count: int) -> None:
    columns = columns_of(tmp_path / "columns", [{"year": year} for year in range(30)])
    assert columns["year"].codes is None
    wanted = list(range(5, 5 + count))
    assert np.flatnonzero(allowed_rows({"year": {"$in": [*wanted, 99]}}, columns)).tolist() == wanted


@pytest.mark.promise("filter")
def test_the_values_of_a_filter_are_counted_at_all_levels() -> None:
    filters: list[Any] = [5, {}, {"a": 1}, {"a": {"$in": [1, 2]}}, {"$or": [{}, {"a": [[1]]}]}]
    assert list(map(count_values, filters)) == [1, 1, 2, 5, 7]
    assert count_values({"a": {"$in": [1] * 10 * MOST_FILTER_VALUES}}) > MOST_FILTER_VALUES


@pytest.mark.promise("filter")
def test_a_filter_can_hold_many_values(tmp_path: Path) -> None:
    columns = columns_of(tmp_path / "columns", ROWS)
    many = [f"nobody {number}" for number in range(5 * MOST_FILTER_VALUES)]
    expected = allowed_rows({"author": "ann"}, columns)
    np.testing.assert_array_equal(allowed_rows({"author": {"$in": [*many, "ann"]}}, columns), expected)
