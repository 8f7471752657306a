"""The request of a search: the bounds of its fields, their defaults, and its errors in one line."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from semsearch.search.query import Query, query_of
from semsearch.search.request import LocalRequest, RerankOptions, SimilarRequest, describe_errors

NAMES = [f"x{number}" for number in range(11)]
BOUNDS: dict[str, tuple[list[Any], list[Any]]] = {  # the outermost values that pass, and the first ones that do not
    "text": (["a", "a" * 65_536], ["", " \n", "a" * 65_537, "a\ud800"]),
    "id": (["a", "a" * 65_536], ["", "a" * 65_537]),
    "num_results": ([1, 100, 5.0], [0, 101, 5.5, "5", True]),
    "offset": ([0, 10_000, 3.0], [-1, 10_001]),
    "filter": ([{}, {"a": {"$in": [1] * 997}}, {"$or": [{}] * 998}], [{"a": {"$in": [1] * 998}}, {"$or": [{}] * 999}]),
    "group_size": ([1, 20, 3.0], [0, 21]),
    "rerank": ([{"candidates": 1}, {"candidates": 100}, {}], [{"candidates": 0}, {"candidates": 101}, {"weight": 1}]),
    "fusion_weight": ([0, 1], [-0.5, 1.5]),
    "min_score": ([-1e300, 1e300, 0, "floor"], [math.inf, math.nan, "high"]),
    "group_by": (["a", "a" * 200], ["", "a" * 201]),
    "sort": ([{"a": "asc"}, dict.fromkeys(NAMES[:10], "desc")], [{}, dict.fromkeys(NAMES, "desc"), {"a": "up"}]),
    "facets": ([[], NAMES[:10]], [NAMES, [""]]),
    "include": ([[], ["text", "metadata", "source"]], [["text"] * 4]),
    "without": ([[], ["a" * 1_000] * 20], [["a"] * 21, ["a" * 1_001], [" "]]),
    "exact": ([True, False], [1, "true"]),
    "colour": ([], ["red"]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_field_takes_its_outermost_values_and_no_further_ones(name: str) -> None:
    passing, refused = BOUNDS[name]
    for value in passing:
        SimilarRequest.model_validate({name: value})
    for value in refused:
        with pytest.raises(ValidationError) as error:
            SimilarRequest.model_validate({name: value})
        assert {each["loc"][0] for each in error.value.errors()} == {name}


def test_a_filter_with_too_many_values_is_described_by_their_number() -> None:
    with pytest.raises(ValidationError) as error:
        SimilarRequest.model_validate({"filter": {"a": {"$in": [1] * 998}}})
    found = describe_errors(error.value.errors(), "search")
    assert found.startswith("filter: expected at most 1000 values, lists and objects included, not 1001, found {'a': ")


BEYOND = {"num_results": [101], "offset": [10_001], "filter": BOUNDS["filter"][1]}  # what a server refuses


@pytest.mark.parametrize("name", BOUNDS)
def test_a_request_in_the_process_of_its_caller_differs_only_in_limits_of_a_server(name: str) -> None:
    passing, refused = BOUNDS[name]
    for value in [*passing, *BEYOND.get(name, [])]:
        LocalRequest.model_validate({name: value})
    for value in [each for each in refused if each not in BEYOND.get(name, [])]:
        with pytest.raises(ValidationError):
            LocalRequest.model_validate({name: value})
    assert query_of(LocalRequest()) == Query()


def test_of_many_wrong_parts_the_first_one_is_reported() -> None:
    with pytest.raises(ValidationError) as error:
        SimilarRequest.model_validate({"include": ["x", "y", "z"]})
    assert [each["loc"] for each in error.value.errors()] == [("include", 0)]


def test_a_request_is_a_query_with_the_same_defaults() -> None:
    assert query_of(SimilarRequest()) == Query()
    assert RerankOptions().candidates == 20
    request = SimilarRequest(text="goose", facets=["a"], include=["text"], rerank=RerankOptions(), offset=2)
    expected = Query("goose", facets=("a",), include=("text",), rerank=20, offset=2)
    assert query_of(request) == expected


def error(message: str, *place: object, kind: str = "int_type", found: object = None) -> dict[str, Any]:
    return {"loc": place, "msg": message, "type": kind, "input": found}


def test_the_first_three_errors_are_described_in_a_line() -> None:
    errors = [
        error("Input should be a number", "body", "min_score", "<number>", found="x"),
        error("Field required", "body", "text", kind="missing", found={}),
        error("Extra inputs are not permitted", "body", "a" * 61, kind="extra_forbidden", found=1),
        error("Expected less", "body", "sort", 1, found=["y" * 100]),
    ]
    first = "min_score: input should be a number, found 'x'; text: field required"
    third = f"{'a' * 60}…: extra inputs are not permitted"
    assert describe_errors(errors[:3]) == f"{first}; {third}"
    assert describe_errors(errors) == f"{first}; {third}; and 1 more"
    assert describe_errors([error("Wrong", "body", "a" * 60, found=2)]) == f"{'a' * 60}: wrong, found 2"
    long = "y" * 100
    assert describe_errors([error("Wrong", "body", found=[long])]).startswith("body: wrong, found ['yyyy")
    assert len(describe_errors([error("Wrong", "body", found=[long])])) == len("body: wrong, found ") + 61
    assert describe_errors([error("Wrong", "top_k", found=None)], "search") == "top_k: wrong, found None"
    assert describe_errors([error("Wrong", found=None)], "search") == "search: wrong, found None"
