"""Operators of filters that combine values and filters: with one, none and all, and for rows without a value."""

from typing import Any

import pytest

from semsearch import Search
from tests.promises.conftest import SHELF, SearchOf, ids_of

ALL = "abcdefgh"


def promises(examples: list[tuple[str, dict[str, Any], str]]) -> list[Any]:
    """Return a parameter for each example: an operator, a filter, and the ids that it keeps."""
    return [
        pytest.param(condition, ids, marks=pytest.mark.promise(f"filter.{operator}"), id=str(condition))
        for operator, condition, ids in examples
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    promises(
        [
            ("$in", {"copies": {"$in": []}}, ""),
            ("$in", {"copies": {"$in": [2]}}, "cd"),
            ("$in", {"copies": {"$in": [2, 2]}}, "cd"),
            ("$in", {"copies": {"$in": [2, 9]}}, "cd"),
            ("$in", {"copies": {"$in": [0, 1, 2, 3]}}, "abcdegh"),
            ("$in", {"genre": {"$in": ["", "nov"]}}, "de"),
            ("$in", {"printed": {"$in": ["2024-02-29T00:00:00Z", "1970-01-01"]}}, "aeh"),
            ("$in", {"lent": {"$in": [True, False]}}, "abcegh"),
            ("$in", {"tags": {"$in": ["war", "seaside"]}}, "bcd"),
            ("$in", {"price": {"$in": [2.5, 0.5, 1.5, -0.5, 0.0, 7, 8, 9, 10]}}, "abcdeh"),
            ("$nin", {"copies": {"$nin": []}}, ALL),
            ("$nin", {"copies": {"$nin": [2]}}, "abefgh"),
            ("$nin", {"copies": {"$nin": [0, 1, 2, 3]}}, "f"),
            ("$nin", {"genre": {"$nin": ["novel", "poem", "nov"]}}, "ef"),
            ("$nin", {"lent": {"$nin": [True, False]}}, "df"),
            ("$nin", {"tags": {"$nin": ["sea"]}}, "bdef"),
            ("$nin", {"printed": {"$nin": ["2024-02-29"]}}, "bcdefg"),
            ("$exists", {"price": {"$exists": True}}, "abcdeh"),
            ("$exists", {"price": {"$exists": False}}, "fg"),
            ("$exists", {"tags": {"$exists": True}}, "abcdegh"),
            ("$exists", {"genre": {"$exists": False}}, "f"),
            ("$exists", {"id": {"$exists": True}}, ALL),
            ("$exists", {"id": {"$exists": False}}, ""),
            ("$startsWith", {"genre": {"$startsWith": ""}}, "abcdegh"),
            ("$startsWith", {"genre": {"$startsWith": "nov"}}, "abdgh"),
            ("$startsWith", {"genre": {"$startsWith": "nove"}}, "abgh"),
            ("$startsWith", {"genre": {"$startsWith": "novels"}}, ""),
            ("$startsWith", {"tags": {"$startsWith": "sea"}}, "acdgh"),
            ("$startsWith", {"tags": {"$startsWith": ""}}, "abcdgh"),
            ("$not", {"$not": {}}, ""),
            ("$not", {"$not": {"copies": 3}}, "bcdef"),
            ("$not", {"$not": {"copies": {"$gte": 0}}}, "f"),
            ("$not", {"$not": {"copies": {"$gt": 3}}}, ALL),
            ("$not", {"$not": {"$not": {"copies": 3}}}, "agh"),
            ("$not", {"$not": {"copies": 3, "genre": "novel"}}, "bcdef"),
            ("$not", {"$not": {"copies": {"$exists": False}}}, "abcdegh"),
            ("$and", {"$and": [{"copies": 3}]}, "agh"),
            ("$and", {"$and": [{"copies": 3}, {"price": 2.5}]}, "ah"),
            ("$and", {"$and": [{"copies": 3}, {}]}, "agh"),
            ("$and", {"$and": [{"copies": 3}, {"copies": 2}]}, ""),
            ("$and", {"$and": [{"copies": 3}], "price": 2.5}, "ah"),
            ("$or", {"$or": [{"copies": 3}]}, "agh"),
            ("$or", {"$or": [{"copies": 3}, {"copies": 2}]}, "acdgh"),
            ("$or", {"$or": [{"copies": 3}, {}]}, ALL),
            ("$or", {"$or": [{"copies": 9}, {"genre": "drama"}]}, ""),
            ("$or", {"$or": [{"copies": 3}, {"copies": 2}], "price": 2.5}, "ah"),
        ]
    ),
)
def test_an_operator_keeps_one_none_or_all(shelf: Search, condition: dict[str, Any], expected: str) -> None:
    assert ids_of(shelf.search(filter=condition, top_k=100)) == [*expected]


@pytest.mark.parametrize(
    ("condition", "expected"),
    promises(
        [
            ("$lt", {"lent": {"$lt": False}}, ""),
            ("$lt", {"lent": {"$lt": True}}, "be"),
            ("$lte", {"lent": {"$lte": False}}, "be"),
            ("$lte", {"lent": {"$lte": True}}, "abcegh"),
            ("$eq", {"lent": False}, "be"),
            ("$eq", {"lent": True}, "acgh"),
            ("$ne", {"lent": {"$ne": True}}, "bdef"),
            ("$gte", {"lent": {"$gte": False}}, "abcegh"),
            ("$gte", {"lent": {"$gte": True}}, "acgh"),
            ("$gt", {"lent": {"$gt": False}}, "acgh"),
            ("$gt", {"lent": {"$gt": True}}, ""),
        ]
    ),
)
def test_false_is_below_true(shelf: Search, condition: dict[str, Any], expected: str) -> None:
    assert ids_of(shelf.search(filter=condition, top_k=100)) == [*expected]


@pytest.mark.parametrize(
    ("condition", "expected"),
    promises(
        [
            ("$eq", {"tags": "sea"}, "acgh"),
            ("$ne", {"tags": {"$ne": "sea"}}, "bdef"),
            ("$gt", {"tags": {"$gt": "sea"}}, "bcd"),
            ("$gte", {"tags": {"$gte": "sea"}}, "abcdgh"),
            ("$lt", {"tags": {"$lt": "war"}}, "acdgh"),
            ("$lte", {"tags": {"$lte": "sea"}}, "acgh"),
            ("$and", {"tags": {"$eq": "sea", "$gt": "sea"}}, "c"),
        ]
    ),
)
def test_a_list_passes_if_one_of_its_values_does(shelf: Search, condition: dict[str, Any], expected: str) -> None:
    assert ids_of(shelf.search(filter=condition, top_k=100)) == [*expected]


@pytest.mark.parametrize(
    "condition",
    [
        {"lent": 1},
        {"lent": 0.0},
        {"lent": {"$in": [True, 1]}},
        {"lent": "true"},
        {"lent": None},
        {"copies": True},
        {"copies": {"$gte": False}},
        {"copies": {"$nin": [True]}},
        {"price": {"$lt": "2.5"}},
        {"copies": "3"},
        {"copies": {"$in": [3, "3"]}},
        {"copies": None},
        {"copies": [3]},
        {"genre": 3},
        {"tags": ["sea"]},
        {"tags": 1},
        {"printed": 0},
        {"printed": "yesterday"},
        {"printed": ""},
        {"copies": {"$exists": 1}},
        {"copies": {"$exists": "true"}},
        {"$and": []},
        {"$or": []},
        {"$not": []},
        {"$and": {"copies": 3}},
        {"copies": {}},
        {"copies": {"$in": 3}},
        {"printed": {"$startsWith": "2024"}},
    ],
    ids=str,
)
@pytest.mark.promise("filter")
def test_a_value_of_another_type_is_refused(shelf: Search, condition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^filter.*: expected .*; the columns are: id \(string\), copies"):
        shelf.search(filter=condition)


@pytest.mark.parametrize(
    ("mode", "expected"), [("semantic", "ach"), ("keyword", "ach"), ("hybrid", "ach"), (None, "ach")]
)
@pytest.mark.promise("filter")
def test_a_filter_keeps_the_same_texts_in_each_mode(shelf: Search, mode: Any, expected: str) -> None:
    found = shelf.search("baker keeper grandmother nurse", mode=mode, filter={"price": {"$gte": 1.5}}, top_k=100)
    assert sorted(ids_of(found)) == [*expected]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
@pytest.mark.promise("filter")
def test_as_many_texts_are_found_as_pass_the_filter(shelf: Search, mode: Any) -> None:
    for top_k, count in ((1, 1), (2, 2), (3, 2)):
        assert len(shelf.search("the baker", mode=mode, filter={"copies": 2}, top_k=top_k)) == count


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.promise("filter")
def test_an_empty_filter_changes_nothing(shelf: Search, mode: Any) -> None:
    found = shelf.search("an old sailor", mode=mode, top_k=100)
    assert shelf.search("an old sailor", mode=mode, filter={}, top_k=100) == found
    assert found[0].id == "e"


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.promise("filter")
def test_a_filter_that_keeps_nothing_finds_nothing(shelf: Search, mode: Any) -> None:
    assert shelf.search("the baker", mode=mode, filter={"copies": 4}) == []


@pytest.mark.parametrize("condition", [{}, {"copies": 3}, {"copies": {"$ne": 3}}, {"$not": {}}, {"id": "a"}], ids=str)
@pytest.mark.promise("filter")
def test_an_index_whose_texts_are_removed_has_none_that_passes(emptied: Search, condition: dict[str, Any]) -> None:
    assert emptied.search(filter=condition) == []
    for mode in ("semantic", "keyword", "hybrid"):
        assert emptied.search("the baker", mode=mode, filter=condition) == []


@pytest.mark.promise("filter")
def test_one_row_passes_or_not(search_of: SearchOf) -> None:
    one = search_of([{"id": "a", "x": 2.5}])
    passing: list[dict[str, Any]] = [{}, {"x": 2.5}, {"x": {"$gte": 2.5}}, {"x": {"$in": [2.5]}}, {"x": {"$ne": 2}}]
    for condition in passing:
        assert ids_of(one.search(filter=condition)) == ["a"]
        assert one.search(filter={"$not": condition}) == []


@pytest.mark.promise("filter")
def test_two_equal_rows_pass_together(search_of: SearchOf) -> None:
    two = search_of([SHELF[0], SHELF[0] | {"id": "h"}])
    for condition in ({"price": 2.5}, {"price": {"$lte": 2.5}}, {"genre": "novel"}, {"lent": True}, {"tags": "sea"}):
        assert ids_of(two.search(filter=condition)) == ["a", "h"]
        assert two.search(filter={"$not": condition}) == []
    assert ids_of(two.search(filter={"id": "h"})) == ["h"]
