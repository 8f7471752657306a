"""A search in S3 Vectors finds what a search in the bundle finds; what it cannot do is refused clearly."""

import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.startup import warm_up_body
from semsearch.aws.s3vectors.filters import translate
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from semsearch.engine.metadata.filters import FilterError
from semsearch.publishing.s3vectors import filterable_metadata
from semsearch.search.query import Query
from tests.app_fixtures import connect_app
from tests.engine.metadata.test_filters import COMPARED, FLOATS, INTS, holds
from tests.no_model import ELSEWHERE, without_model
from tests.stand_ins.s3vectors import StandIn, passes
from tests.world import WHAT, WHO

Ask = Callable[..., httpx.Response]

NONE: list[dict[str, Any]] = [{"chapter": 77}, {"places": {"$in": []}}, {"$not": {"who": {"$nin": []}}}]
FILTERS: list[dict[str, Any] | None] = [
    None,
    {"chapter": 5},
    {"chapter": {"$ne": 5}},
    {"chapter": {"$gte": 3, "$lt": 9}},
    {"chapter": {"$exists": False}},
    {"who": {"$in": ["the baker", "an angry goose"]}},
    {"who": {"$nin": ["the baker", "an angry goose"]}},
    {"told": {"$gte": "2024-03-05", "$lt": "2024-06-05T00:00:00+02:00"}},
    {"true": True},
    {"places": "sea"},
    {"places": {"$ne": "sea"}},
    {"places": {"$exists": False}},
    {"who": {"$startsWith": "the b", "$ne": "the baker"}},
    {"places": {"$startsWith": "s"}},
    {"$or": [{"places": "village"}, {"chapter": {"$lte": 2}}], "true": False},
    {"$and": [{"chapter": {"$gt": 1}}, {"$or": [{"who": "the baker"}, {"told": {"$exists": True}}]}]},
    {"$or": [{"chapter": 5}, {}]},
    {"$not": {"who": "the baker", "$or": [{"chapter": {"$in": [1, 2]}}, {"places": {"$nin": ["sea"]}}]}},
    {"$not": {"$not": {"told": {"$exists": False}}}},
    {"$or": [{"chapter": {"$in": []}}, {"places": {"$nin": []}, "who": "the baker"}]},
    {"$not": {"places": {"$in": []}}, "chapter": 5},
    *NONE,
]

PARTS = ["text", "source", "metadata"]


def parts_of(hit: dict[str, Any]) -> list[Any]:
    """Return what a hit has beside its id and its score."""
    return [hit[name] for name in ("index", *PARTS)]


@pytest.mark.parametrize("condition", FILTERS)
def test_the_same_ten_hits_as_in_the_bundle(ask: Ask, condition: dict[str, Any] | None) -> None:
    for number in range(2):
        text = f"{WHO[number * 12]} {WHAT[number * 6]}"
        request = {"num_results": 10, "filter": condition, "include": PARTS}
        here, there = ask(text, local=True, mode="semantic", **request).json(), ask(text, **request).json()
        # equal scores may be cut off at other texts, so the scores are compared, and the texts above the last score
        scores = [hit["score"] for hit in here["results"]]
        assert [hit["score"] for hit in there["results"]] == pytest.approx(scores, abs=2e-6)
        last = scores[-1] + 4e-6 if len(scores) == 10 else -2
        clear = {hit["id"]: parts_of(hit) for hit in here["results"] if hit["score"] > last}
        found = {hit["id"]: parts_of(hit) for hit in there["results"]}
        assert clear.items() <= found.items()
        assert len(found) == len(scores)
    assert bool(scores) != (condition in NONE)


def test_without_a_model_a_vector_is_searched_and_a_text_alone_refused(
    published: Path, bundle: Path, tmp_path: Path, embedder: Embedder
) -> None:
    folder = without_model(Path(shutil.copytree(published, tmp_path / "bundle")))
    loaded = load(folder)
    client, own = connect_app(loaded), connect_app(load(bundle))
    (embedding,) = embedder.embed(embedder.tokenize(["an angry goose"], role="query"))
    by_vector = {"vector": embedding.tolist(), "include": []}
    for more in ({}, {"text": "goose", "mode": "semantic"}, {"filter": {"chapter": 5}}, {"group_by": "who"}):
        there = client.post("/similar", json=by_vector | more).json()["results"]
        here = own.post("/similar", json=by_vector | more).json()["results"]
        assert [hit["score"] for hit in there] == pytest.approx([hit["score"] for hit in here], abs=2e-6)
        assert there
    for body in ({"text": "goose"}, {"text": "goose", "mode": "semantic"}):
        reply = client.post("/similar", json=body)
        assert (reply.status_code, "has n" in reply.json()["error"], ELSEWHERE in reply.json()["error"]) == (
            422,
            True,
            True,
        )
    assert client.post("/similar", json={}).json()["error"].startswith("text: missing; expected a text or a vector")
    assert warm_up_body(loaded).keys() == {"vector", "num_results"}


MOST = "filter: expected at most 100 constraints"


@pytest.mark.parametrize(
    ("condition", "beginning", "found"),
    [
        ({"$and": [{"who": {"$lt": ""}}]}, "filter.$and.0.who.$lt: expected $eq, $ne, $in, $nin, $startsWith", "'$lt'"),
        ({"true": {"$gt": False}}, "filter.true.$gt: expected $eq, $ne, $in, $nin or $exists", "'$gt'"),
        ({"$not": {"chapter": {"$gt": 3}}}, "filter.$not.chapter.$gt: expected $eq, $ne, $in, $nin", "'$gt'"),
        ({"chapter": {"$in": list(range(101))}}, MOST, "101"),
        ({"$and": [{"chapter": {"$gte": 0, "$lt": 30}, "who": {"$ne": "x"}}] * 26}, MOST, "104"),
        ({"places": {"$in": ["sea"] * 99, "$exists": False}}, MOST, "102"),
    ],
    ids=["strings", "booleans", "$not", "$in", "several", "empty lists"],
)
def test_a_filter_that_s3_vectors_cannot_apply_is_refused(
    ask: Ask, condition: dict[str, Any], beginning: str, found: str
) -> None:
    reply = ask("goose", filter=condition)
    assert reply.status_code == 422
    assert reply.json()["error"].startswith(beginning)
    assert f"found {found}" in reply.json()["error"]
    assert not StandIn.queries


@pytest.mark.parametrize("condition", [{"chapter": "5"}, {"$or": []}, {"told": {"$startsWith": "2"}}])
def test_a_wrong_filter_gets_the_error_that_the_bundle_gives(ask: Ask, condition: dict[str, Any]) -> None:
    here, there = ask("goose", local=True, filter=condition), ask("goose", filter=condition)
    assert there.status_code == here.status_code == 422
    assert there.json()["error"] == here.json()["error"].replace("id (string), ", "")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mode", "hybrid", "mode: found 'hybrid', expected 'semantic'; "),
        ("mode", "keyword", "mode: found 'keyword', expected 'semantic'; "),
        ("boost", {"chapter": 0.1}, "boost: found {'chapter': 0.1}, expected none; "),
        ("without", ["goose"], "without: found ['goose'], expected none; "),
        ("rerank", {"candidates": 20}, "rerank: found 20, expected none; "),
        ("exact", True, "exact: found True, expected False; "),
        ("id", "story-001", "id: found 'story-001', expected none; "),
        ("sort", {"chapter": "asc"}, "sort: found {'chapter': 'asc'}, expected none; "),
        ("facets", ["who"], "facets: found ['who'], expected none; "),
        ("text", None, "text: missing; expected a text or a vector; "),
        ("offset", 96, "offset: found 96, with num_results 101, expected at most 100 together; "),
        ("group_by", "places", "group_by: found 'places', expected a column of type string; name one of who"),
    ],
)
def test_what_only_a_bundle_can_do_is_refused(ask: Ask, field: str, value: object, message: str) -> None:
    StandIn.queries.clear()
    reply = ask(**{"text": "goose", field: value})
    assert reply.status_code == 422
    assert reply.json()["error"].startswith(message)
    assert field == "group_by" or "the texts are in S3 Vectors" in reply.json()["error"]
    assert not StandIn.queries


def test_a_vector_finds_there_what_it_finds_in_the_bundle(ask: Ask) -> None:
    vector = [0.25, -1.0, 0.0, 2.0] * 12
    found = ask(None, vector=vector, highlights=True)
    assert found.status_code == 200
    assert found.json() == ask(None, local=True, vector=vector, highlights=True).json()
    assert ask("goose", vector=vector).json()["results"][0]["id"] == found.json()["results"][0]["id"]
    reply = ask("goose", vector=vector, queries="model")
    assert (reply.status_code, reply.json()["error"]) == (
        422,
        "queries: found 'model' with a vector, expected one of them; leave one out",
    )
    assert ask(None, vector=vector[1:]).status_code == 422


def test_a_bundle_without_a_measured_floor_has_none_in_s3_vectors_either(ask: Ask) -> None:
    reply = ask("goose", min_score="floor")
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("min_score: found 'floor', but ")


def test_pages_scores_and_highlights_are_those_of_the_bundle(ask: Ask) -> None:
    text = f"{WHO[3]} {WHAT[4]}"
    hits = ask(text, num_results=100).json()["results"]
    pages = [ask(text, num_results=20, offset=offset).json()["results"] for offset in range(0, 100, 20)]
    assert [hit for page in pages for hit in page] == hits
    least = hits[7]["score"]
    expected = [hit for hit in hits if hit["score"] >= least]
    assert ask(text, num_results=100, min_score=least).json()["results"] == expected
    (found,) = ask(text, num_results=1, highlights=True, include=[]).json()["results"]
    (local,) = ask(text, local=True, mode="semantic", num_results=1, highlights=True, include=[]).json()["results"]
    assert found.keys() == {"index", "id", "score", "highlights", "snippet"}
    assert (found["highlights"], found["snippet"]) == (local["highlights"], local["snippet"])


@pytest.mark.parametrize("include", [[], ["metadata"]])
def test_groups_are_those_of_the_hundred_hits(ask: Ask, include: list[str]) -> None:
    text = f"{WHO[3]} {WHAT[4]}"
    groups: dict[object, list[int]] = {}
    for hit in ask(text, num_results=100).json()["results"]:
        value = hit["metadata"].get("who")
        groups.setdefault(hit["index"] if value is None else value, []).append(hit["index"])
    found = ask(text, num_results=50, group_by="who", group_size=2, include=include).json()["results"]
    rows = [[group["index"], *(other["index"] for other in group["other_passages"])] for group in found]
    assert rows == [group[:2] for group in list(groups.values())[:50]]
    assert [group["group"] for group in found] == [who if isinstance(who, str) else None for who in list(groups)[:50]]
    for group in found:
        for each in (group, *group["other_passages"]):
            assert {"text", "metadata"} & each.keys() == set(include)


OF_KINDS = {"n": "number", "d": "date", "s": "string", "l": "list", "m": "numbers", "b": "boolean"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, None),
        ({"n": 2}, {"n": {"$eq": 2}}),
        ({"n": {"$gt": 2**53}}, {"n": {"$gt": 2**53}}),
        ({"n": {"$gt": 2**53 + 1}}, {"n": {"$gt": 2**53 + 2}}),
        ({"n": {"$lt": -(2**53) - 1}}, {"n": {"$lt": -(2**53) - 2}}),
        ({"b": True}, {"b": {"$eq": True}}),
        ({"s": {"$ne": "x"}}, {"$or": [{"s": {"$ne": "x"}}, {"s": {"$exists": False}}]}),
        ({"l": {"$ne": "x"}}, {"$or": [{"l": {"$nin": ["x"]}}, {"l": {"$exists": False}}]}),
        ({"m": {"$ne": 1}}, {"$or": [{"m": {"$nin": [1]}}, {"m": {"$exists": False}}]}),
        ({"s": {"$startsWith": ""}}, {"s": {"$exists": True}}),
        ({"s": {"$startsWith": "x"}}, {"s": {"$startsWith": "x"}}),
        ({"s": {"$exists": False}}, {"s": {"$exists": False}}),
        ({"l": {"$exists": True}}, {"$or": [{"l": {"$exists": True}}, {"_empty": {"$eq": "l"}}]}),
        (
            {"l": {"$exists": False}},
            {
                "$and": [
                    {"l": {"$exists": False}},
                    {"$or": [{"_empty": {"$exists": False}}, {"_empty": {"$nin": ["l"]}}]},
                ]
            },
        ),
        ({"s": {"$in": []}}, {"$and": [{"s": {"$exists": True}}, {"s": {"$exists": False}}]}),
        ({"s": {"$nin": []}}, None),
        ({"$or": [{"n": 1}]}, {"n": {"$eq": 1}}),
        (
            {"$or": [{"n": 1, "s": "x"}, {"b": False}]},
            {"$or": [{"$and": [{"n": {"$eq": 1}}, {"s": {"$eq": "x"}}]}, {"b": {"$eq": False}}]},
        ),
        ({"$or": [{"n": 1}, {}]}, None),
        ({"$not": {"$not": {"n": 1}}}, {"n": {"$eq": 1}}),
        (
            {"$not": {"$or": [{"n": {"$ne": 1}}, {"b": {"$exists": True}}]}},
            {"$and": [{"n": {"$eq": 1}}, {"b": {"$exists": False}}]},
        ),
        (
            {"$not": {"$and": [{"n": {"$in": [1, 2]}}, {"$not": {"s": "x"}}]}},
            {"$or": [{"$or": [{"n": {"$nin": [1, 2]}}, {"n": {"$exists": False}}]}, {"s": {"$eq": "x"}}]},
        ),
        ({"s": {"$in": ["x"] * 100}}, {"s": {"$in": ["x"] * 100}}),
    ],
    ids=repr,
)
def test_a_filter_is_written_as_s3_vectors_reads_it(condition: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert translate(condition, OF_KINDS) == expected


@pytest.mark.parametrize("name", ["s", "l", "m", "b"])
def test_only_numbers_and_dates_can_be_compared(name: str) -> None:
    value = {"m": 1, "b": True}.get(name, "x")
    starts = ", $startsWith" if name in ("s", "l") else ""
    with pytest.raises(FilterError) as raised:
        translate({name: {"$gte": value}}, OF_KINDS)
    expected = f"$eq, $ne, $in, $nin{starts} or $exists, since S3 Vectors compares only numbers and dates"
    assert expected in str(raised.value)


KINDS = {"year": "number", "told": "date"}
NEAR = st.sampled_from([sign * 2**53 + step for sign in (1, -1) for step in (-1, 0, 1)])


@given(
    number=(NEAR | INTS).filter(lambda number: abs(number) <= 2**53) | st.sampled_from([0.5, -0.5, 2.0**52 - 0.5]),
    wanted=st.lists(NEAR | INTS | FLOATS | st.just(-(10**400)), min_size=1, max_size=12),
)
def test_numbers_compare_as_in_python(number: float, wanted: list[float]) -> None:
    row = {"year": number}
    vector = filterable_metadata(row, KINDS)
    operators: list[dict[str, Any]] = [{each: wanted[0]} for each in ("$eq", "$ne", *COMPARED)]
    for condition in ({"year": each} for each in [*operators, {"$in": wanted}, {"$nin": wanted}]):
        translated = translate(condition, KINDS)
        assert translated is not None
        assert passes(vector, translated) == holds(condition, row), condition


def test_each_field_of_a_query_is_used_refused_or_without_effect_in_this_mode() -> None:
    refused = {each.name for each in fields(Query) if each.metadata.get("needs_texts")} | {"exact"}
    used = {"text", "num_results", "mode", "filter", "include", "offset", "min_score", "group_by", "group_size"}
    used |= {"highlights", "queries", "vector"}
    without_effect = {"prefix", "correct", "fusion_weight", "facets_of", "rerank_weight"}
    assert refused | used | without_effect == {each.name for each in fields(Query)}
