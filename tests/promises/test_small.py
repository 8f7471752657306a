"""Every field of a search in an index without texts, with one text, and with two equal ones."""

from typing import Any

import pytest

from semsearch import Search
from tests.promises.conftest import SearchOf, ids_of
from tests.promises.geese import ORDERS, QUERIES

ROW = {"text": "an angry goose", "price": 1, "genre": "novel", "lent": True}
TWINS = [ROW | {"id": "y"}, ROW | {"id": "x"}]
EACH: list[dict[str, Any]] = [
    {"offset": 0},
    {"sort": {"price": "desc"}},
    {"facets": ["genre"]},
    {"highlights": True},
    {"filter": {"price": 1}},
    {"boost": {"lent": {"equals": True, "weight": 1}}},
]
OF_QUERIES: list[dict[str, Any]] = [
    {"group_by": "genre"},
    {"min_score": -1.0},
    {"exact": True},
    {"fusion_weight": 1.0},
    {"prefix": True},
    {"correct": False},
    {"facets": ["genre"], "facets_of": "results"},
]
CASES = [(mode, fields) for mode in ORDERS for fields in EACH]
CASES += [(mode, fields) for mode in QUERIES for fields in OF_QUERIES]
PARAMETERS = [pytest.param(*case, marks=pytest.mark.promise(*case[1]), id=str(case)) for case in CASES]
each_field = pytest.mark.parametrize(("mode", "fields"), PARAMETERS)


def asked(mode: str, fields: dict[str, Any], id: str) -> dict[str, Any]:
    """Return the fields of a search in one of the columns; with an id, it is this one."""
    if mode == "listing":
        return {"filter": {}} | fields
    if mode == "id":
        return {"id": id} | fields
    return {"text": "goose", "mode": mode} | fields


def facets_of(count: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the facets of a reply that counts this many texts."""
    if "facets" not in fields:
        return {}
    return {"genre": [{"value": "novel", "count": count}] * (count > 0)}


@pytest.mark.parametrize(("mode", "fields"), [each for each in PARAMETERS if each.values[0] != "id"])
def test_without_texts_nothing_is_found_or_counted(emptied: Search, mode: str, fields: dict[str, Any]) -> None:
    found = emptied.search(**asked(mode, fields, ""))
    assert (found, found.facets, found.total or 0) == ([], facets_of(0, fields), 0)


@pytest.fixture(scope="module")
def one(search_of: SearchOf) -> Search:
    return search_of([ROW | {"id": "x"}])


@each_field
def test_one_text_is_found_and_nothing_is_like_it(one: Search, mode: str, fields: dict[str, Any]) -> None:
    found = one.search(**asked(mode, fields, "x"))
    assert ids_of(found) == ([] if mode == "id" else ["x"])
    assert found.facets == facets_of(len(found), fields)


@pytest.fixture(scope="module")
def two(search_of: SearchOf) -> Search:
    return search_of(TWINS)


@each_field
def test_two_equal_texts_are_in_the_order_of_the_index(two: Search, mode: str, fields: dict[str, Any]) -> None:
    found = two.search(**asked(mode, fields, "x"))
    texts = [*found, *(other for hit in found for other in hit.other_passages)]
    assert ids_of(texts) == (["y"] if mode == "id" else ["y", "x"])
    assert len({hit.score for hit in texts}) == 1
    assert found.facets == facets_of(len(texts), fields)
