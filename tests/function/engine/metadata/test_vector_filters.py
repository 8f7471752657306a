"""Filters of S3 Vectors: what each filter becomes, and its numbers, which are float64 there, against Python's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export.publishing.vectors import filterable_metadata
from function.engine.metadata.filters import FilterError
from function.engine.metadata.vector_filters import _NoRows, translate
from tests.function.engine.metadata.test_filters import COMPARED, FLOATS, INTS, holds
from tests.stand_ins.s3vectors import passes

KINDS = {"year": "number", "told": "date"}
NEAR = st.sampled_from([sign * 2**53 + step for sign in (1, -1) for step in (-1, 0, 1)])


@settings(max_examples=150)
@given(
    number=(NEAR | INTS).filter(lambda number: abs(number) <= 2**53) | st.sampled_from([0.5, -0.5, 2.0**52 - 0.5]),
    wanted=st.lists(NEAR | INTS | FLOATS | st.just(-(10**400)), min_size=1, max_size=12),
)
def test_numbers_are_compared_as_exactly_as_by_python(number: float, wanted: list[float]) -> None:
    row = {"year": number}
    vector = filterable_metadata(row, KINDS)
    operators: list[dict[str, Any]] = [{each: wanted[0]} for each in ("$eq", "$ne", *COMPARED)]
    for condition in ({"year": each} for each in [*operators, {"$in": wanted}, {"$nin": wanted}]):
        translated = translate(condition, KINDS)
        assert translated is not None
        assert passes(vector, translated) == holds(condition, row), condition


def test_dates_that_float64_would_round_are_told_from_their_neighbours() -> None:
    vector = filterable_metadata({"told": "2255-06-05T23:47:34.740992Z"}, KINDS)  # 2**53 microseconds since 1970
    assert vector == {"told": 2**53}
    for later in ("2255-06-05T23:47:34.740993Z", "9999-12-31"):
        for operator, expected in (("$eq", False), ("$lt", True), ("$gte", False)):
            translated = translate({"told": {operator: later}}, KINDS)
            assert translated is not None
            assert passes(vector, translated) == expected, (operator, later)


# the form of each filter; tests/function/s3vectors compares which rows it keeps

COLUMNS = {"year": "number", "author": "string", "new": "boolean", "told": "date", "tags": "list"}
DAY = 86_400_000_000  # microseconds

TRANSLATED: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    ({}, None),
    ({"year": 5}, {"year": {"$eq": 5}}),
    ({"year": {"$gt": 1, "$lte": 9}}, {"$and": [{"year": {"$gt": 1}}, {"year": {"$lte": 9}}]}),
    ({"author": {"$in": ["ann", "bob"]}}, {"author": {"$in": ["ann", "bob"]}}),
    ({"author": {"$ne": "ann"}}, {"$or": [{"author": {"$ne": "ann"}}, {"author": {"$exists": False}}]}),
    ({"author": {"$nin": ["ann"]}}, {"$or": [{"author": {"$nin": ["ann"]}}, {"author": {"$exists": False}}]}),
    ({"new": {"$exists": False}}, {"new": {"$exists": False}}),
    ({"told": {"$gte": "1970-01-02"}}, {"told": {"$gte": DAY}}),
    ({"tags": {"$ne": "sea"}}, {"$or": [{"tags": {"$nin": ["sea"]}}, {"tags": {"$exists": False}}]}),
    ({"$or": [{"year": 1}, {"year": 2}]}, {"$or": [{"year": {"$eq": 1}}, {"year": {"$eq": 2}}]}),
    ({"$or": [{"year": 1}, {}]}, None),
    ({"$and": [{"year": 1}, {"new": True}]}, {"$and": [{"year": {"$eq": 1}}, {"new": {"$eq": True}}]}),
]


@pytest.mark.parametrize(("condition", "expected"), TRANSLATED, ids=str)
def test_a_filter_is_translated(condition: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert translate(condition, COLUMNS) == expected


@pytest.mark.parametrize("condition", [{"none": 1}, {"year": "1"}, {"author": {"$gt": "a"}}, {"$or": []}], ids=str)
def test_a_filter_that_cannot_be_used_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        translate(condition, COLUMNS)


def test_a_corpus_without_rows_has_masks_without_rows() -> None:
    columns = _NoRows(COLUMNS)
    for mask in (columns.exists(), columns["year"].compare("$gt", 1), columns["tags"].equals_any(["sea"])):
        assert (mask.shape, mask.dtype) == ((columns.count,), np.dtype(np.bool_))
    assert columns.count == 0
