"""Filters become filters of Amazon S3 Vectors; tests/s3vectors compares which rows both keep."""

from typing import Any

import numpy as np
import pytest

from function.engine.filters import FilterError
from function.engine.vector_filters import _NoRows, translate

KINDS = {"year": "number", "author": "string", "new": "boolean", "told": "date", "tags": "list"}
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
    assert translate(condition, KINDS) == expected


@pytest.mark.parametrize("condition", [{"none": 1}, {"year": "1"}, {"author": {"$gt": "a"}}, {"$or": []}], ids=str)
def test_a_filter_that_cannot_be_used_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        translate(condition, KINDS)


def test_a_corpus_without_rows_has_masks_without_rows() -> None:
    columns = _NoRows(KINDS)
    for mask in (columns.exists(), columns["year"].compare("$gt", 1), columns["tags"].equals_any(["sea"])):
        assert (mask.shape, mask.dtype) == ((columns.count,), np.dtype(np.bool_))
    assert columns.count == 0
