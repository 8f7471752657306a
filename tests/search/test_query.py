"""A query, its results and its errors, without a search."""

from typing import Any

import pytest

from semsearch.engine.metadata.filters import FilterError
from semsearch.search.query import filter_error
from semsearch.search.results import Found, heading_path

LENGTHS = [(16, 60), (17, 61)]  # letters of the last string of a list, and characters of the list


@pytest.mark.parametrize(("letters", "length"), LENGTHS)
def test_the_error_of_a_filter_lists_the_columns_and_shows_60_characters_of_a_value(letters: int, length: int) -> None:
    found = ["x" * 16, "y" * 16, "z" * letters]
    shown = repr(found)
    assert len(shown) == length
    error = filter_error(FilterError("filter.a", "a number", found), {"id": "string", "a": "number"})
    end = "" if length == 60 else "…"
    columns = "the columns are: id (string), a (number)"
    assert str(error) == f"filter.a: expected a number, found {shown[:60]}{end}; {columns}"


def test_a_column_of_several_types_and_a_corpus_without_columns_have_errors_of_their_own() -> None:
    wrong = FilterError("filter", "the name of a column", "a")
    assert str(filter_error(wrong, {}, ["a"])) == (
        "filter: the values of 'a' are of several types, so it cannot be compared; index the texts again with "
        "--column a=string, or with values of one type"
    )
    assert str(filter_error(wrong, {})) == ("filter: expected the name of a column, found 'a'; the columns are: none")


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({}, []),
        ({"title": "A"}, ["A"]),
        ({"title": "A", "headings": ["A", "B"]}, ["A", "B"]),
        ({"title": "B", "headings": ["A", "B"]}, ["B", "A", "B"]),
        ({"title": 7, "headings": ["A", 8]}, ["7", "A", "8"]),
        ({"title": "", "headings": "A"}, []),
    ],
)
def test_the_path_of_headings_begins_with_the_title_once(metadata: dict[str, Any], path: list[str]) -> None:
    assert heading_path(metadata) == path


def test_a_reply_has_only_what_a_search_has_found() -> None:
    result: Any = {"index": 0, "id": "a", "score": 0.5}
    listed: Any = {"index": 1, "id": "b", "score": None}
    found = Found([result, listed], True)
    assert found.scores == [0.5]
    assert found.reply() == {"results": [result, listed], "truncated": True}
    facets: Any = {"c": []}
    assert Found([], False, facets, 0, {}).reply() == {"results": [], "truncated": False, "facets": facets, "total": 0}
    corrected = {"gose": {"goose": ("goos",)}}
    assert Found([], False, None, None, corrected, "table").reply() == {
        "results": [],
        "truncated": False,
        "corrected": {"gose": ["goose"]},
        "queries": "table",
    }
