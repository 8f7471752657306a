"""Scores: the least one, boosts, and the weight of the meaning, in each mode."""

import math
from pathlib import Path
from typing import Any

import pytest

from semsearch import Search
from tests.promises.conftest import SearchOf, corpus_of
from tests.promises.geese import ARGUMENTS, GEESE, MODES, ORDERS, QUERIES, ask, groups
from tests.world import add_floor, write_bundle

NEW_FIRST = {"new": {"equals": True, "weight": 10}}


def scores(search: Search, mode: str, **fields: Any) -> dict[str, float | None]:
    """Return the score of each text by its id."""
    return {hit.id: hit.score for hit in search.search(**{"top_k": 100} | ARGUMENTS[mode] | fields)}


def scores_around(search: Search, mode: str, id: str, **fields: Any) -> tuple[float, float]:
    """Return the score of a text, and the next larger float."""
    score = scores(search, mode, **fields)[id]
    assert score is not None
    return score, math.nextafter(score, math.inf)


@pytest.mark.promise("min_score")
@pytest.mark.parametrize(
    ("mode", "id", "found", "above"),
    [
        *((mode, "a", "a", "") for mode in MODES),
        *((mode, "c1", "a b c1 c2", "a b") for mode in MODES),  # c2 has the same score
        *((mode, "g", "a b c1 c2 d e f g", "a b c1 c2 d e f") for mode in MODES),
        ("id", "b", "b", ""),
        ("id", "c1", "b c1 c2", "b"),
        ("id", "g", "b c1 c2 d e f g", "b c1 c2 d e f"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"top_k": 8}, {"highlights": True}], ids=str)
def test_a_text_is_found_with_just_the_least_score_and_not_below_it(
    geese: Search, mode: str, id: str, found: str, above: str, more: dict[str, Any]
) -> None:
    score, next_score = scores_around(geese, mode, id)
    assert ask(geese, mode, min_score=score, **more) == found
    assert ask(geese, mode, min_score=next_score, **more) == above


@pytest.mark.promise("min_score", "boost")
@pytest.mark.parametrize("mode", QUERIES)
def test_the_least_score_is_compared_with_the_score_after_boosts(geese: Search, mode: str) -> None:
    score, next_score = scores_around(geese, mode, "b", boost=NEW_FIRST)
    a = [] if mode == "id" else ["a"]
    assert ask(geese, mode, min_score=score, boost=NEW_FIRST).split() == ["d", "g", *a, "b"]
    assert ask(geese, mode, min_score=next_score, boost=NEW_FIRST).split() == ["d", "g", *a]


@pytest.mark.promise("min_score", "sort", "group_by", "rerank")
@pytest.mark.parametrize("mode", MODES)
def test_the_least_score_holds_in_each_other_order(geese: Search, reranked: Search, mode: str) -> None:
    score, next_score = scores_around(geese, mode, "c1")
    assert ask(geese, mode, min_score=score, sort={"price": "asc"}) == "b c1 a c2"
    assert ask(geese, mode, min_score=next_score, sort={"price": "asc"}) == "b a"
    assert groups(geese, mode, min_score=score) == ["north: a c1", "south: b", "None: c2"]
    assert groups(geese, mode, min_score=next_score) == ["north: a", "south: b"]
    assert ask(reranked, mode, min_score=score, rerank=8) == "a c1 c2 b"
    assert ask(reranked, mode, min_score=next_score, rerank=8) == "a b"


@pytest.mark.promise("min_score", "boost")
@pytest.mark.parametrize("mode", MODES)
def test_a_text_is_found_with_just_the_floor_and_not_below_it(geese: Search, tmp_path: Path, mode: str) -> None:
    score, next_score = scores_around(geese, mode, "c1")
    dear_first = {"price": {"log": True, "weight": 10}}
    for floor, found, boosted in ((score, "a b c1 c2", "a c1 b c2"), (next_score, "a b", "a b")):
        search = Search(add_floor(write_bundle(tmp_path / str(floor), corpus_of(GEESE)), {mode: floor}))
        assert ask(search, mode, min_score="floor") == found
        assert ask(search, mode, min_score="floor", boost=dear_first) == boosted


@pytest.mark.promise("boost")
@pytest.mark.parametrize("mode", ORDERS)
@pytest.mark.parametrize(
    "boost",
    [
        {},
        {"kind": {"equals": "bird", "weight": 0.5}},
        {"kind": {"equals": "fish", "weight": 0.5}},
        {"new": {"equals": True, "weight": 0}},
    ],
    ids=str,
)
def test_equal_boosts_change_no_order(geese: Search, mode: str, boost: dict[str, Any]) -> None:
    added = 0.5 if "bird" in str(boost) else 0.0
    assert ask(geese, mode, boost=boost) == ORDERS[mode]
    for id, score in scores(geese, mode).items():
        if score is not None:
            assert scores(geese, mode, boost=boost)[id] == round(score + added, 6)


@pytest.mark.promise("boost")
@pytest.mark.parametrize(
    ("mode", "true", "false", "log"),
    [
        *((mode, "d g a b c1 c2 e f", "a b c1 c2 d e f g", "a c1 e b d c2 f g") for mode in MODES),
        ("id", "d g b c1 c2 e f", "b c1 c2 d e f g", "c1 e b d c2 f g"),
        ("listing", "d g c1 a f c2 b e", "a d c1 g f c2 b e", "a c1 e d b g f c2"),
    ],
)
def test_texts_with_equal_boosts_keep_their_order(geese: Search, mode: str, true: str, false: str, log: str) -> None:
    assert ask(geese, mode, boost={"new": {"equals": True, "weight": 10}}) == true
    assert ask(geese, mode, boost={"new": {"equals": False, "weight": 10}}) == false
    assert ask(geese, mode, boost={"price": {"log": True, "weight": 10}}) == log  # log 1 is 0


@pytest.mark.promise("boost")
@pytest.mark.parametrize("mode", MODES)
def test_what_a_boost_adds(geese: Search, search_of: SearchOf, mode: Any) -> None:
    numbers = search_of([{"text": "goose", "id": str(n), "n": n} for n in (-2, -1, 0, 1)] + [{"text": "goose"}])
    hits = numbers.search("goose", mode=mode, boost={"n": {"log": True, "weight": 2}})
    assert {hit.id: (hit.scores or {})["boost"] for hit in hits} == {
        **{"-2": 0, "-1": 0, "0": 0, "4": 0},
        "1": round(2 * math.log(2), 6),
    }
    for half_life, old in (("1h", 0), ("999999w", 2)):
        hits = geese.search("goose", mode=mode, top_k=8, boost={"seen": {"half_life": half_life, "weight": 2}})
        added = {hit.id: round((hit.scores or {})["boost"]) for hit in hits}
        assert added == dict.fromkeys(added, 0) | {"c1": 2, "d": old, "g": old}  # a date in the future counts as now


@pytest.mark.promise("fusion_weight")
@pytest.mark.parametrize(
    ("mode", "query"), [("hybrid", {"text": "goose spoon"}), ("id", {"id": "d"})], ids=["hybrid", "id"]
)
def test_the_weight_of_the_meaning_can_be_all_or_nothing(geese: Search, mode: str, query: dict[str, Any]) -> None:
    query = query | {"mode": "hybrid", "top_k": 8}
    words, meaning = (geese.search(**query, fusion_weight=weight) for weight in (0, 1))
    assert meaning[0].scores is not None
    assert [hit.score for hit in meaning] == [(hit.scores or {})["semantic"] for hit in meaning]
    ratios = {(hit.score or 0) / (hit.scores or {})["keyword"] for hit in words}
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-4)
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="fusion_weight: input should be"):
            geese.search(**query, fusion_weight=wrong)
