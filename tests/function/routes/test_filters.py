"""POST /similar with a filter and with parts left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from export.corpus import Corpus
from tests.conftest import write_bundle

WORDS = "The judge lost her yellow radio on the ferry"
COLUMNS = "; the columns are: id (string), chapter (number), places (list), told (date), true (boolean), who (string)"


def similar(client: httpx.Client, **more: object) -> list[dict[str, Any]]:
    reply = client.post("/similar", json={"text": WORDS, "num_results": 100, **more})
    assert reply.status_code == 200, reply.text
    results: list[dict[str, Any]] = reply.json()["results"]
    return results


@pytest.mark.parametrize(
    ("condition", "keeps"),
    [
        ({"chapter": {"$gte": 5, "$lt": 7}}, lambda metadata: metadata.get("chapter") in (5, 6)),
        ({"places": {"$in": ["village", "moon"]}}, lambda metadata: "village" in metadata.get("places", [])),
        ({"$or": [{"chapter": 1}, {"chapter": 2}], "true": True}, lambda m: m.get("chapter") in (1, 2) and m["true"]),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_the_texts_whose_metadata_pass_are_found_in_the_order_without_a_filter(
    client: httpx.Client, corpus: Corpus, condition: dict[str, Any], keeps: Callable[[dict[str, Any]], bool]
) -> None:
    kept = [row for row, metadata in enumerate(map(json.loads, corpus.metadata)) if keeps(metadata)]
    results = similar(client, filter=condition)
    assert sorted(result["index"] for result in results) == kept
    assert len(kept) > 5
    in_order = [result for result in similar(client) if result["index"] in kept]
    assert [result for result in results if result in in_order] == in_order
    assert similar(client, filter=condition, num_results=3) == results[:3]


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_empty_filter_is_passed_by_every_text(client: httpx.Client, nothing: object) -> None:
    assert similar(client, filter=nothing) == similar(client)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"year": 5}, "filter: expected the name of a column, $and or $or, found 'year'"),
        ({"chapter": {"$gt": "5"}}, "filter.chapter.$gt: expected a number, found '5'"),
        ({"$or": [{}, {"true": {"$eq": 1}}]}, "filter.$or.1.true.$eq: expected true or false, found 1"),
        ({"\ud800": 1}, "filter: expected the name of a column, $and or $or, found '\\ud800'"),
    ],
    ids=ascii,
)
def test_a_wrong_filter_is_refused_with_the_place_and_the_columns(
    client: httpx.Client, condition: dict[str, Any], message: str
) -> None:
    reply = client.post("/similar", content=json.dumps({"text": WORDS, "filter": condition}), headers=JSON)
    assert reply.status_code == 422
    assert reply.json() == {"error": message + COLUMNS, "error_type": "invalid"}


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("depth", [9, 100])
@pytest.mark.parametrize(("begin", "end"), [('{"$and": [', "]}")])
def test_a_filter_nested_too_deep_is_refused(client: httpx.Client, depth: int, begin: str, end: str) -> None:
    content = '{"text": "goose", "filter": ' + begin * depth + "{}" + end * depth + "}"
    reply = client.post("/similar", content=content, headers=JSON)
    assert reply.status_code in (400, 422)
    assert len(reply.content) < 500


def test_texts_without_columns_have_nothing_to_filter_by(connect: Callable[..., httpx.Client], tmp_path: Path) -> None:
    client = connect(bundle=write_bundle(tmp_path / "bundle", Corpus(["The baker"], ["a"], ["{}"], empty_texts=0)))
    assert not (tmp_path / "bundle" / "columns.safetensors").exists()
    assert len(similar(client, filter={"$or": [{}]})) == 1
    reply = client.post("/similar", json={"text": WORDS, "filter": {"who": "x"}})
    assert reply.status_code == 422
    assert reply.json()["error"].endswith("found 'who'; the columns are: id (string)")


def test_only_a_request_with_a_filter_has_that_phase(client: httpx.Client) -> None:
    assert "filter;dur=" not in client.post("/similar", json={"text": WORDS}).headers["server-timing"]
    timing = client.post("/similar", json={"text": WORDS, "filter": {"chapter": 5}}).headers["server-timing"]
    assert [phase.partition(";")[0] for phase in timing.split(", ")] == [
        *("parse", "filter", "keyword", "embed", "search", "reply", "total")
    ]


# Parts of a result


@pytest.mark.parametrize("parts", [[], ["text"]], ids=str)
def test_a_result_has_its_row_its_id_its_score_and_the_parts_that_were_asked_for(
    client: httpx.Client, parts: list[str]
) -> None:
    keys = {"index", "id", "score", "scores", *parts}
    expected = [{key: value for key, value in result.items() if key in keys} for result in similar(client)]
    assert similar(client, include=parts) == expected
    assert expected[0].keys() == keys


def test_a_text_that_was_not_asked_for_is_not_read(
    connect: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    monkeypatch.setattr("function.engine.passages.Passages.text", None)
    assert len(similar(client, include=["metadata"])) == 100
    monkeypatch.setattr("function.engine.passages.Passages.metadata", None)
    assert len(similar(client, include=[])) == 100
