"""The number of results, pages, groups, the order by columns and by a reranker, in each mode and in lists."""

from typing import Any

import pytest

from semsearch import Search
from tests.promises.geese import MODES, ORDERS, QUERIES, ask, groups


@pytest.mark.promise("num_results")
@pytest.mark.parametrize("mode", ORDERS)
def test_the_first_text_all_and_no_more_than_all_are_returned(geese: Search, mode: str) -> None:
    every = ORDERS[mode].split()
    assert ask(geese, mode, top_k=1).split() == every[:1]
    assert ask(geese, mode, top_k=len(every) - 1).split() == every[:-1]
    assert ask(geese, mode, top_k=len(every)).split() == every
    assert ask(geese, mode, top_k=100).split() == every


@pytest.mark.promise("offset")
@pytest.mark.parametrize("mode", ORDERS)
def test_a_page_begins_after_the_offset_and_ends_with_the_last_text(geese: Search, mode: str) -> None:
    every = ORDERS[mode].split()
    assert ask(geese, mode, top_k=3, offset=0).split() == every[:3]
    assert ask(geese, mode, top_k=3, offset=3).split() == every[3:6]
    assert ask(geese, mode, top_k=2, offset=1).split() == every[1:3]
    assert ask(geese, mode, top_k=3, offset=6).split() == every[6:]
    assert ask(geese, mode, top_k=1, offset=len(every) - 1).split() == every[-1:]
    assert ask(geese, mode, top_k=3, offset=len(every)) == ""
    assert ask(geese, mode, top_k=100, offset=10_000) == ""


@pytest.mark.promise("num_results", "offset", "group_size", "rerank")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": 0}, "top_k: .* greater than or equal to 1, found 0"),
        ({"offset": -1}, "offset: .* greater than or equal to 0, found -1"),
        ({"group_size": 0}, "group_size: .* greater than or equal to 1, found 0"),
        ({"group_size": 21}, "group_size: .* less than or equal to 20, found 21"),
        ({"rerank": 0}, "rerank: .* greater than or equal to 1, found 0"),
        ({"rerank": 101}, "rerank: .* less than or equal to 100, found 101"),
    ],
    ids=str,
)
def test_a_number_beyond_its_limits_is_refused(geese: Search, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        geese.search("goose", **arguments)


ASCENDING, DESCENDING = {"price": "asc"}, {"price": "desc"}
TWO_COLUMNS = {"river": "asc", "price": "desc"}


@pytest.mark.promise("sort")
@pytest.mark.parametrize(
    ("mode", "ascending", "descending", "two_columns"),
    [
        *((mode, "g b d c1 e a c2 f", "a c1 e b d g c2 f", "e a c1 f b d g c2") for mode in MODES),
        ("id", "g b d c1 e c2 f", "c1 e b d g c2 f", "e c1 f b d g c2"),
        ("listing", "g d b c1 e a f c2", "a c1 e d b g f c2", "e a c1 f d b g c2"),
    ],
)
def test_equal_values_keep_the_order_before_and_texts_without_a_value_come_last(
    geese: Search, mode: str, ascending: str, descending: str, two_columns: str
) -> None:
    assert ask(geese, mode, sort=ASCENDING) == ascending
    assert ask(geese, mode, sort=DESCENDING) == descending
    assert ask(geese, mode, sort=TWO_COLUMNS) == two_columns


NEW_FIRST = {"new": {"equals": True, "weight": 10}}


@pytest.mark.promise("offset", "num_results")
@pytest.mark.parametrize("mode", ORDERS)
@pytest.mark.parametrize("fields", [{"sort": ASCENDING}, {"sort": DESCENDING}, {"boost": NEW_FIRST}], ids=str)
def test_the_first_the_last_and_no_further_page_of_another_order(
    geese: Search, mode: str, fields: dict[str, Any]
) -> None:
    every = ask(geese, mode, **fields).split()
    assert every != ORDERS[mode].split()
    assert ask(geese, mode, top_k=3, **fields).split() == every[:3]
    assert ask(geese, mode, top_k=3, offset=3, **fields).split() == every[3:6]
    assert ask(geese, mode, top_k=3, offset=len(every) - 1, **fields).split() == every[-1:]
    assert ask(geese, mode, top_k=3, offset=len(every), **fields) == ""


GROUPS = {mode: ["north: a c1 f", "south: b d", "None: c2", "east: e", "None: g"] for mode in MODES}
GROUPS["id"] = ["south: b d", "north: c1 f", "None: c2", "east: e", "None: g"]


@pytest.mark.promise("group_by", "offset", "num_results")
@pytest.mark.parametrize("mode", QUERIES)
def test_groups_are_in_the_order_of_their_best_texts_and_so_are_their_pages(geese: Search, mode: str) -> None:
    assert groups(geese, mode) == groups(geese, mode, top_k=5) == GROUPS[mode]
    assert groups(geese, mode, top_k=1) == GROUPS[mode][:1]
    assert groups(geese, mode, top_k=2, offset=2) == GROUPS[mode][2:4]
    assert groups(geese, mode, top_k=2, offset=4) == GROUPS[mode][4:]
    assert groups(geese, mode, top_k=2, offset=5) == []


@pytest.mark.promise("group_size")
@pytest.mark.parametrize(
    ("mode", "sizes"),
    [
        *((mode, {1: "a", 2: "a c1", 3: "a c1 f", 4: "a c1 f", 20: "a c1 f"}) for mode in MODES),
        ("id", {1: "c1", 2: "c1 f", 3: "c1 f", 20: "c1 f"}),
    ],
)
def test_a_group_has_its_best_texts_up_to_its_size(geese: Search, mode: str, sizes: dict[int, str]) -> None:
    for size, texts in sizes.items():
        assert f"north: {texts}" in groups(geese, mode, group_size=size)


@pytest.mark.promise("rerank", "RerankOptions.candidates")
@pytest.mark.parametrize(
    ("mode", "three", "every"),
    [
        *((mode, "a c1 b c2 d e f g", "g f a e c1 c2 d b") for mode in MODES),
        ("id", "c1 c2 b d e f g", "g f e c1 c2 d b"),
    ],
)
def test_the_reranker_orders_its_candidates_alone(reranked: Search, mode: str, three: str, every: str) -> None:
    assert ask(reranked, mode, rerank=1) == ORDERS[mode]
    assert ask(reranked, mode, rerank=3) == three
    assert ask(reranked, mode, rerank=len(every.split())) == every
    assert ask(reranked, mode, rerank=100) == every


@pytest.mark.promise("offset", "num_results", "rerank")
@pytest.mark.parametrize("mode", QUERIES)
def test_pages_of_a_reranked_search_have_the_same_candidates(reranked: Search, mode: str) -> None:
    every = ask(reranked, mode, rerank=3).split()
    assert ask(reranked, mode, rerank=3, top_k=1).split() == every[:1]
    assert ask(reranked, mode, rerank=3, top_k=2, offset=2).split() == every[2:4]
    assert ask(reranked, mode, rerank=3, top_k=2, offset=len(every) - 1).split() == every[-1:]
    assert ask(reranked, mode, rerank=3, top_k=2, offset=len(every)) == ""


@pytest.mark.promise("group_by", "rerank")
@pytest.mark.parametrize("mode", MODES)
def test_groups_of_a_reranked_search_are_in_the_new_order(reranked: Search, mode: str) -> None:
    assert groups(reranked, mode, rerank=8) == ["None: g", "north: f a c1", "east: e", "None: c2", "south: d b"]
