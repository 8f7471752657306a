"""Texts by their ids, also ids that are beginnings of others, and the texts that are similar to one of them."""

from typing import Any, Literal, get_args

import pytest

from semsearch import Search
from tests.promises.conftest import SHELF, SearchOf, ids_of

Mode = Literal["semantic", "keyword", "hybrid"]
# one is the beginning of the next, of one byte to more than eight; the last two texts have the same id
IDS = ["a", "a b", "a b#1", "a b#10", "a b#10/long", "A", "ż", "ża", "1", "01", "🦆", "twice", "twice"]


@pytest.fixture(scope="module")
def ids(search_of: SearchOf) -> Search:
    texts = [row["text"] for row in SHELF]
    return search_of([{"id": id, "text": texts[place % len(texts)]} for place, id in enumerate(IDS)])


@pytest.mark.parametrize("id", IDS)
@pytest.mark.promise("id")
def test_an_id_finds_its_own_text_and_not_one_that_begins_like_it(ids: Search, id: str) -> None:
    found = ids.get(id)
    assert found is not None
    assert (found.id, found.index) == (id, IDS.index(id))  # the first one, if two have it
    assert ids_of(ids.search(filter={"id": id})) == [id] * IDS.count(id)


@pytest.mark.parametrize(
    "id", ["", "a ", "a b#", "a b#10/lon", "a b#10/longer", "b", "żab", "001", "twic", "twicetwice"]
)
@pytest.mark.promise("id")
def test_an_unknown_id_finds_nothing_also_if_ids_begin_like_it(ids: Search, id: str) -> None:
    assert ids.get(id) is None
    assert ids.search(filter={"id": id}) == []
    if id:
        with pytest.raises(ValueError, match=r"^id: found .*, expected the id of a text; search for one"):
            ids.similar_to(id)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", IDS),
        ("a", ["a", "a b", "a b#1", "a b#10", "a b#10/long"]),
        ("a b#1", ["a b#1", "a b#10", "a b#10/long"]),
        ("a b#10/long", ["a b#10/long"]),
        ("a b#10/longer", []),
        ("ż", ["ż", "ża"]),
        ("🦆", ["🦆"]),
        ("twice", ["twice", "twice"]),
    ],
)
@pytest.mark.promise("filter.$startsWith")
def test_ids_are_found_by_their_beginnings(ids: Search, start: str, expected: list[str]) -> None:
    assert ids_of(ids.search(filter={"id": {"$startsWith": start}}, top_k=100)) == expected


@pytest.mark.parametrize(
    ("operator", "operand", "expected"),
    [
        pytest.param(operator, operand, expected, marks=pytest.mark.promise(f"filter.{operator}"))
        for operator, operand, expected in (
            ("$lt", "a", ["A", "1", "01"]),
            ("$lte", "a", ["a", "A", "1", "01"]),
            ("$gte", "ż", ["ż", "ża", "🦆"]),
            ("$gt", "ż", ["ża", "🦆"]),
            ("$in", ["a", "ż", "none"], ["a", "ż"]),
            ("$nin", ["twice", "🦆", "a b"], ["a", "a b#1", "a b#10", "a b#10/long", "A", "ż", "ża", "1", "01"]),
        )
    ],
)
def test_ids_compare_as_strings(ids: Search, operator: str, operand: Any, expected: list[str]) -> None:
    assert ids_of(ids.search(filter={"id": {operator: operand}}, top_k=100)) == expected


@pytest.mark.promise("id")
def test_a_number_is_the_id_with_its_digits(ids: Search) -> None:
    assert ids_of(ids.search(filter={"id": 1})) == ["1"]
    found = ids.get(1)
    assert found is not None
    assert found.id == "1"


@pytest.mark.parametrize(
    "field", [{"facets": ["id"]}, {"sort": {"id": "asc"}}, {"text": "baker", "group_by": "id"}], ids=str
)
@pytest.mark.promise("id")
def test_only_filters_take_the_ids_as_a_column(ids: Search, field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r": found 'id', expected a column of type .*; leave it out"):
        ids.search(**field)


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("id")
def test_similar_texts_are_all_but_the_text_itself(shelf: Search, mode: Mode) -> None:
    found = ids_of(shelf.similar_to("a", mode=mode, top_k=100))
    assert found[0] == "h"
    assert sorted(found) == [*"bcdefgh"]


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("id")
def test_similar_texts_pass_the_filter_which_need_not_keep_the_text_itself(shelf: Search, mode: Mode) -> None:
    assert ids_of(shelf.similar_to("a", mode=mode, filter={"id": {"$in": ["a", "h"]}})) == ["h"]
    assert ids_of(shelf.similar_to("a", mode=mode, filter={"id": "h"})) == ["h"]
    assert shelf.similar_to("a", mode=mode, filter={"id": "a"}) == []


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.promise("id")
def test_the_only_text_has_none_that_is_similar_and_of_two_equal_ones_each_has_the_other(
    search_of: SearchOf, mode: Mode
) -> None:
    assert search_of(SHELF[:1]).similar_to("a", mode=mode) == []
    two = search_of([SHELF[0], SHELF[0] | {"id": "h"}])
    assert ids_of(two.similar_to("a", mode=mode)) == ["h"]
    assert ids_of(two.similar_to("h", mode=mode)) == ["a"]


@pytest.mark.promise("id")
def test_a_removed_id_is_unknown(emptied: Search) -> None:
    assert emptied.get("a") is None
    with pytest.raises(ValueError, match=r"^id: found 'a', expected the id of a text"):
        emptied.similar_to("a")
