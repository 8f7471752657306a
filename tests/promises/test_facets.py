"""Facets: ties, values that are missing, the most values and ranges, and which texts are counted."""

from typing import Any, Literal, get_args

import pytest

from semsearch import Search
from semsearch.engine.hits import MOST_HITS
from semsearch.engine.metadata.facets import MOST_FACET_VALUES
from semsearch.search.query import MOST_COLUMNS
from tests.promises.conftest import SHELF, SearchOf, ids_of

Mode = Literal["semantic", "keyword", "hybrid"]
COUNTED: dict[str, list[tuple[Any, int]]] = {
    "copies": [(3, 3), (2, 2), (0, 1), (1, 1)],
    "price": [(2.5, 2), (-0.5, 1), (0.0, 1), (0.5, 1), (1.5, 1)],
    "genre": [("novel", 4), ("", 1), ("nov", 1), ("poem", 1)],
    "lent": [(True, 4), (False, 2)],
    "printed": [
        ("2024-02-29", 2),
        ("1969-12-31", 1),
        ("1970-01-01", 1),
        ("2024-02-29T12:00:00Z", 1),
        ("2024-03-01", 1),
    ],
    "tags": [("sea", 4), ("war", 2), ("seaside", 1)],
}


def counts(search: Search, column: str, **fields: Any) -> list[tuple[Any, int]]:
    """Return the values of a facet and their counts, in its order."""
    return [(each["value"], each["count"]) for each in search.search(**fields, facets=[column]).facets[column]]


def ranges(search: Search, column: str) -> list[tuple[Any, Any, int]]:
    """Return the ranges of a facet and their counts, in its order."""
    found = search.search(facets=[column]).facets[column]
    return [(each.get("from"), each.get("to"), each["count"]) for each in found if "value" not in each]


@pytest.mark.parametrize("column", COUNTED)
@pytest.mark.promise("facets")
def test_values_are_counted_most_frequent_first_and_ties_ascend(shelf: Search, column: str) -> None:
    assert counts(shelf, column) == COUNTED[column]
    assert shelf.search(facets=[column]).total == len(SHELF)  # also those without a value


@pytest.mark.parametrize(
    ("condition", "expected", "total"),
    [
        ({}, COUNTED["genre"], 8),
        ({"copies": 3}, [("novel", 3)], 3),
        ({"copies": {"$lte": 2}}, [("", 1), ("nov", 1), ("novel", 1), ("poem", 1)], 4),
        ({"genre": "nov"}, [("nov", 1)], 1),
        ({"genre": {"$exists": False}}, [], 1),
        ({"copies": 4}, [], 0),
    ],
    ids=str,
)
@pytest.mark.promise("facets")
def test_facets_count_the_texts_that_pass_the_filter(
    shelf: Search, condition: dict[str, Any], expected: list[tuple[str, int]], total: int
) -> None:
    assert counts(shelf, "genre", filter=condition) == expected
    assert shelf.search(filter=condition, facets=["genre"]).total == total


@pytest.mark.parametrize(
    ("mode", "text", "expected", "total"),
    [
        ("semantic", "baker nurse", [(3, 3), (2, 2), (0, 1), (1, 1)], 8),
        ("keyword", "baker nurse", [(3, 2), (2, 1)], 3),
        ("keyword", "violinists", [(3, 1)], 1),
        ("keyword", '"baker nurse"', [], 0),
        ("hybrid", "baker nurse", [(3, 3), (2, 2), (0, 1), (1, 1)], 8),
        ("hybrid", '"nurse" baker', [(2, 1)], 1),
    ],
)
@pytest.mark.promise("facets")
def test_facets_count_what_the_mode_can_find(
    shelf: Search, mode: Mode, text: str, expected: list[tuple[int, int]], total: int
) -> None:
    assert counts(shelf, "copies", text=text, mode=mode) == expected
    assert shelf.search(text, mode=mode, facets=["copies"]).total == total


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("facets")
def test_facets_do_not_depend_on_the_page(shelf: Search, mode: Mode) -> None:
    expected = counts(shelf, "genre", text="baker keeper", mode=mode, top_k=100)
    for page in ({"top_k": 1}, {"top_k": 1, "offset": 1}, {"offset": 10_000}, {"min_score": 1000.0}):
        assert counts(shelf, "genre", text="baker keeper", mode=mode, **page) == expected


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("facets")
def test_facets_of_similar_texts_do_not_count_the_text_itself(shelf: Search, mode: Mode) -> None:
    assert counts(shelf, "genre", id="a", mode=mode) == [("novel", 3), ("", 1), ("nov", 1), ("poem", 1)]
    assert shelf.similar_to("a", mode=mode, facets=["genre"]).total == 7


@pytest.mark.promise("facets")
def test_without_the_field_nothing_is_counted(shelf: Search) -> None:
    found = shelf.search("the baker")
    assert (found.facets, found.total) == ({}, None)
    listed = shelf.search(filter={"copies": 3})
    assert (listed.facets, listed.total) == ({}, 3)


@pytest.mark.promise("facets")
def test_ten_columns_are_counted_and_eleven_refused(search_of: SearchOf) -> None:
    names = [f"x{number:02}" for number in range(MOST_COLUMNS + 1)]
    search = search_of([dict.fromkeys(names, 1)])
    assert list(search.search(facets=names[:-1]).facets) == names[:-1]
    with pytest.raises(ValueError, match=r"^facets: list should have at most 10 items"):
        search.search(facets=names)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.promise("facets")
def test_of_many_strings_the_hundred_most_frequent_are_returned(search_of: SearchOf, more: int) -> None:
    words = [f"{number:03}" for number in range(MOST_FACET_VALUES + more)]
    search = search_of([{"x": word} for word in [*words, words[-1]]])
    assert counts(search, "x") == [(words[-1], 2), *((word, 1) for word in words[:99])]
    assert search.search(facets=["x"]).total == len(words) + 1


@pytest.mark.promise("facets")
def test_a_hundred_numbers_are_values_and_one_more_is_in_ranges(search_of: SearchOf) -> None:
    hundred = search_of([{"x": number} for number in range(100)])
    assert counts(hundred, "x") == [(number, 1) for number in range(100)]
    more = search_of([{"x": number} for number in range(101)])
    assert ranges(more, "x") == [(0, 20, 20), (20, 40, 20), (40, 60, 20), (60, 80, 20), (80, 100, 20), (100, 120, 1)]
    assert ids_of(more.search(filter={"x": {"$gte": 80, "$lt": 100}}, top_k=100)) == [*map(str, range(80, 100))]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([*range(100), 99.5], [(n * 10, n * 10 + 10, 10 + (n == 9)) for n in range(10)]),
        ([n / 2 for n in range(101)], [*((n * 10, n * 10 + 10, 20) for n in range(5)), (50, 60, 1)]),
        ([*range(100), 1000], [(0, 100, 100), (1000, 1100, 1)]),
        ([-1, *range(100)], [(-20, 0, 1), *((n * 20, n * 20 + 20, 20) for n in range(5))]),
        (
            [f"2024-02-{27 + n // 50:02}T{n % 50 // 3:02}:{n % 3 * 20:02}:00Z" for n in range(100)] + ["2024-02-29"],
            [("2024-02-27", "2024-02-28", 50), ("2024-02-28", "2024-02-29", 50), ("2024-02-29", "2024-03-01", 1)],
        ),
    ],
    ids=["ten ranges", "halves", "a gap", "below zero", "days"],
)
@pytest.mark.promise("facets")
def test_a_range_has_its_lower_border_and_not_its_upper_one(
    search_of: SearchOf, values: list[Any], expected: list[tuple[Any, Any, int]]
) -> None:
    assert ranges(search_of([*({"x": value} for value in values), {}]), "x") == expected


@pytest.mark.parametrize("number", [100, 101])
@pytest.mark.promise("facets")
def test_ranges_depend_on_the_values_that_are_counted(search_of: SearchOf, number: int) -> None:
    search = search_of([{"x": value} for value in range(300)])
    found = search.search(filter={"x": {"$lt": number}}, facets=["x"]).facets["x"]
    assert ("value" in found[0]) == (number == 100)
    assert sum(each["count"] for each in found) == number


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("facets_of")
def test_facets_of_results_count_the_hundred_best(search_of: SearchOf, mode: Mode) -> None:
    rows = [{"text": "the angry goose", "x": "near"}] * MOST_HITS
    same = search_of(rows)
    one_more = search_of([*rows, {"text": "an angry goose lost the last ferry", "x": "far"}])
    for search, matching in ((same, [("near", 100)]), (one_more, [("near", 100), ("far", 1)])):
        for of, expected in (("matching", matching), ("results", [("near", 100)])):
            found = counts(search, "x", text="the angry goose", mode=mode, facets_of=of, top_k=1, offset=3)
            assert found == expected


@pytest.mark.promise("facets_of")
def test_a_list_counts_all_its_texts_in_any_case(shelf: Search) -> None:
    for of in ("matching", "results"):
        assert counts(shelf, "genre", facets_of=of) == COUNTED["genre"]


@pytest.mark.promise("facets")
def test_one_row_and_two_equal_rows_are_counted(search_of: SearchOf) -> None:
    for rows in (SHELF[:1], [SHELF[0], SHELF[0]]):
        search = search_of(rows)
        for column, value in (("copies", 3), ("price", 2.5), ("genre", "novel"), ("lent", True), ("tags", "sea")):
            assert counts(search, column) == [(value, len(rows))]


@pytest.mark.promise("facets")
def test_an_index_whose_texts_are_removed_counts_none(emptied: Search) -> None:
    for fields in ({}, {"text": "the baker"}, {"text": "the baker", "mode": "keyword"}, {"filter": {"copies": 3}}):
        found = emptied.search(**fields, facets=list(COUNTED))
        assert (found.facets, found.total) == ({column: [] for column in COUNTED}, 0)
