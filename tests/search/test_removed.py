"""A bundle without some rows answers as the whole bundle does to a filter that excludes these rows."""

from dataclasses import replace
from typing import Any

import pytest

from semsearch.aws.s3.fetch import without_rows
from semsearch.engine.bundle import BundleError
from semsearch.engine.loading import LoadedBundle
from semsearch.search.query import Query, UnknownIdError
from tests.search.searching import find
from tests.search.test_refinements import MODES, world

REMOVED = (0, 4, 20, 40, 89)
IDS = ["id-0", "id-4", "twice", "id-89"]


def parts() -> tuple[LoadedBundle, LoadedBundle]:
    """The whole bundle, and the one without the rows."""
    whole = world()[1]
    assert isinstance(whole, LoadedBundle)
    without = without_rows(whole, REMOVED)
    assert isinstance(without, LoadedBundle)
    return whole, without


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"exact": True},
        {"filter": {"size": {"$gte": 0}}},
        {"filter": {"id": {"$in": ["id-0", "id-3", "twice"]}}},
        {"offset": 7},
        {"group_by": "who", "group_size": 20},
        {"facets": ["who", "tags"]},
        {"sort": {"told": "desc"}},
        {"id": "id-3", "text": None},
        {"highlights": True},
    ],
    ids=str,
)
def test_no_mode_finds_or_counts_a_removed_row(mode: str, fields: dict[str, Any]) -> None:
    whole, without = parts()
    plain: dict[str, Any] = {"text": "the baker lost a key", "mode": mode, "num_results": 90}
    query = Query(**(plain | fields))
    condition: dict[str, Any] = {"id": {"$nin": IDS}}
    if query.filter is not None:
        condition = {"$and": [query.filter, condition]}
    assert find(without, query) == find(whole, replace(query, filter=condition))
    assert find(without, query) != find(whole, query)


def test_the_id_of_a_removed_row_is_unknown() -> None:
    _, without = parts()
    assert without.find("id-1") == 1
    for id in IDS:
        assert without.find(id) is None
        with pytest.raises(UnknownIdError):
            find(without, Query(id=id))


def test_a_row_that_the_bundle_lacks_cannot_be_removed() -> None:
    whole, _ = parts()
    with pytest.raises(BundleError, match="row 90 was removed, expected one of 90 rows"):
        without_rows(whole, [3, 90])
