"""Facets and sorting against counting and sorting in plain Python, for columns of each type."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.engine.metadata.columns import LIST_TYPES
from semsearch.engine.metadata.facets import MOST_RANGES, count_values, sort_rows
from semsearch.engine.tensors import TensorsError
from tests.bundle_files import column_of
from tests.engine.metadata.test_filters import DATES, comparable

EDGES = ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-02:00"]  # not in the years that UTC has in Python
VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "string": ("string", st.sampled_from(["", "a", "ab", "b", "żółw", "🦆", "WORLD"])),
    "signed": ("number", st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1])),
    "unsigned": ("number", st.sampled_from([0, 1, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1])),
    "float": ("number", st.sampled_from([-1.5, -0.25, 0.5, 2.5, 1e300])),
    "boolean": ("boolean", st.booleans()),
    "date": ("date", st.sampled_from(DATES + EDGES)),
    "numbers": ("numbers", st.lists(st.sampled_from([38, 38.5, 2**40]), max_size=4)),
    "list": ("list", st.lists(st.sampled_from(["", "a", "b", "🦆"]), max_size=4)),
}
Rows = tuple[str, list[Any], list[bool] | None]


@st.composite
def rows_of(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(VALUES)) -> Rows:
    """Return the type of a column, the value of each row, None for none, and a mask."""
    kind, values = VALUES[draw(st.sampled_from(kinds))]
    size = draw(st.integers(0, 30))
    column = draw(st.lists(st.none() | values, min_size=size, max_size=size))
    return kind, column, draw(st.none() | st.lists(st.booleans(), min_size=size, max_size=size))


def mask_of(mask: list[bool] | None) -> Any:
    return None if mask is None else np.array(mask, np.bool_)


@given(rows=rows_of())
@example(("date", [EDGES[0], EDGES[1], EDGES[1]], None))
def test_facets_are_the_counts_of_the_values_most_frequent_first(rows: Rows) -> None:
    kind, values, mask = rows
    expected: Counter[Any] = Counter()
    for row, value in enumerate(values):
        if value is not None and (mask is None or mask[row]):
            expected.update({comparable(kind, each) for each in (value if kind in LIST_TYPES else [value])})
    found = [(each["value"], each["count"]) for each in count_values(column_of(values, kind), mask_of(mask))]
    assert {comparable(kind, value): count for value, count in found} == expected
    assert found == sorted(found, key=lambda each: (-each[1], key_of(kind, each[0])))
    types = {"boolean": (bool,), "number": (int, float), "numbers": (int, float)}.get(kind, (str,))
    assert all(isinstance(value, types) and type(count) is int for value, count in found)


def key_of(kind: str, value: Any) -> Any:
    """Return what a column orders values by."""
    return value.encode() if kind in ("string", "list") else comparable(kind, value)


# many values of a column are borders of its ranges
MANY: dict[str, tuple[str, Callable[[random.Random], Any]]] = {
    "whole": ("number", lambda choose: choose.choice([choose.randint(-1000, 1000), 100 * choose.randint(-9, 9)])),
    "huge": (
        "number",
        lambda choose: choose.randint(2**64 - 10**6, 2**64 - 1) // (unit := choose.choice([1, 10**5])) * unit,
    ),
    "hundredths": ("number", lambda choose: choose.choice([choose.randint(-600, 600) / 100, choose.randint(-6, 6)])),
    "largest": ("number", lambda choose: choose.uniform(-1, 1) * 1.79e308),
    "days": ("date", lambda choose: moment(choose.choice([choose.uniform(-4, 4), choose.randint(-4, 4)]))),
    "months": (
        "date",
        lambda choose: choose.choice([moment(choose.uniform(0, 200)), f"1970-0{choose.randint(1, 7)}-01"]),
    ),
    "centuries": (
        "date",
        lambda choose: choose.choice([*EDGES, *(moment(choose.uniform(-719_162, 2_932_896)) for _ in range(9))]),
    ),
}


def moment(days: float) -> str:
    return (datetime(1970, 1, 1) + timedelta(days)).isoformat()


@pytest.mark.parametrize("name", MANY)
def test_ranges_count_the_values_that_a_filter_by_each_keeps(name: str) -> None:
    (kind, value), choose = MANY[name], random.Random(name)
    values = [None if choose.random() < 0.1 else value(choose) for _ in range(500)]
    for mask in (None, [choose.random() < 0.5 for _ in values]):
        found = count_values(column_of(values, kind), mask_of(mask))
        allowed = mask or [True] * len(values)
        counted = [
            comparable(kind, each) for each, passes in zip(values, allowed, strict=True) if passes and each is not None
        ]
        for each in found:
            inside = [
                value
                for value in counted
                if ("from" not in each or value >= comparable(kind, each["from"]))
                and ("to" not in each or value < comparable(kind, each["to"]))
            ]
            assert each["count"] == len(inside) > 0, each
        assert sum(each["count"] for each in found) == len(counted)
        assert 1 < len(found) <= MOST_RANGES


BORDERS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "whole": ("number", list(range(-30, 171)), [-50, 0, 50, 100, 150, 200]),
    "fractions": ("number", [value / 1000 for value in range(105, 350)], [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]),
    "days": ("date", [moment(hour / 24) for hour in range(101)], [f"1970-01-0{day}" for day in range(1, 7)]),
    "Mondays": ("date", [moment(half / 2) for half in range(101)], [moment(7 * n - 3)[:10] for n in range(9)]),
    "months": ("date", [moment(day) for day in range(101)], [f"1970-0{month}-01" for month in range(1, 6)]),
    "decades": (
        "date",
        [f"{year}-0{month}-01" for year in range(1951, 2010) for month in (5, 6)],
        [f"{year}-01-01" for year in range(1950, 2020, 10)],
    ),
    "few": ("number", list(range(100)), []),
}


@pytest.mark.parametrize("name", BORDERS)
@pytest.mark.promise("facets")
def test_the_borders_of_ranges_are_round(name: str) -> None:
    kind, values, borders = BORDERS[name]
    found = count_values(column_of(values, kind), None)
    assert [(each.get("from"), each.get("to")) for each in found if "value" not in each] == list(pairwise(borders))


@pytest.mark.parametrize("place", [0, -1])
def test_ranges_of_dates_that_no_document_can_have_are_refused(place: int) -> None:
    column = column_of([moment(day) for day in range(500)], "date")
    values = np.array(column.values)
    values[place] = (-1 if place == 0 else 1) * 2**62
    with pytest.raises(TensorsError, match="expected the years 1 to 9999"):
        count_values(replace(column, values=values), None)


@pytest.mark.promise("facets")
def test_dates_without_a_time_are_written_without_one() -> None:
    column = column_of(["2024-02-29", "2024-03-01T12:00:00Z"], "date")
    assert [each["value"] for each in count_values(column, None)] == ["2024-02-29", "2024-03-01T12:00:00Z"]


@given(first=rows_of(("string", "signed", "unsigned", "float", "boolean", "date")), is_descending=st.booleans())
def test_rows_are_sorted_as_python_sorts_and_those_without_a_value_come_last(first: Rows, is_descending: bool) -> None:
    kind, values, mask = first
    rows = np.flatnonzero(mask) if mask is not None else np.arange(len(values))[::-1]
    found = sort_rows(rows, [(column_of(values, kind), is_descending)]).tolist()
    keys = {row: key_of(kind, value) for row, value in enumerate(values) if value is not None}
    # sorted keeps the order of equal rows, also with reverse
    expected = sorted((row for row in rows.tolist() if row in keys), key=keys.__getitem__, reverse=is_descending)
    assert found == expected + [row for row in rows.tolist() if row not in keys]
