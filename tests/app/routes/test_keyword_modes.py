"""POST /similar with a mode: keyword and hybrid search through the app, and what they cost those who do not ask."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.engine.bundle import MANIFEST
from semsearch.indexing.corpus import Corpus
from tests.project import ROOT
from tests.world import write_bundle


def ask(client: httpx.Client, text: str, mode: str, **more: object) -> list[dict[str, Any]]:
    reply = client.post("/similar", json={"text": text, "mode": mode, **more})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["results"]
    return found


def phases(client: httpx.Client, **body: object) -> list[str]:
    reply = client.post("/similar", json={"text": "angry goose", **body})
    return re.findall(r"(\w+);dur=", reply.headers["server-timing"])


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize("highlights", [False, True])
def test_a_misspelled_word_is_replaced_unless_the_request_forbids_it_and_the_reply_says_so(
    client: httpx.Client, mode: str, highlights: bool
) -> None:
    body = {"mode": mode, "num_results": 1, "highlights": highlights}
    for text, corrected in (("angry gooes", {"corrected": {"gooes": ["goose"]}}), ("angry goose", {})):
        reply = client.post("/similar", json=body | {"text": text}).json()
        (hit,) = reply.pop("results")
        assert reply == {"truncated": False} | corrected
        assert hit["text"].startswith("An angry goose")
        if highlights:
            assert [hit["text"][start:end] for start, end in hit["highlights"]] == ["angry", "goose"]
    as_it_is = {"text": "gooes", "mode": "keyword", "correct": False, "highlights": highlights}
    assert client.post("/similar", json=as_it_is).json() == {"results": [], "truncated": False}


@pytest.mark.parametrize("weight", [0, 0.25])
@pytest.mark.parametrize("more", [{}, {"highlights": True}])
def test_a_request_can_weigh_the_two_scores(client: httpx.Client, weight: float, more: dict[str, Any]) -> None:
    best = ask(client, "the angry goose", "keyword", num_results=1)[0]["score"]
    hits = ask(client, "the angry goose", "hybrid", num_results=20, fusion_weight=weight, **more)
    for hit in hits:
        parts = hit["scores"]
        expected = weight * parts["semantic"] + (1 - weight) * parts["keyword"] / best
        assert hit["score"] == pytest.approx(expected, abs=1e-5)
    assert hits == sorted(hits, key=lambda hit: -hit["score"])
    in_bundle = ask(client, "the angry goose", "hybrid", fusion_weight=0.6)
    assert in_bundle == ask(client, "the angry goose", "hybrid")


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_an_unfinished_word_finds_and_marks_longer_ones(client: httpx.Client, mode: str) -> None:
    hits = ask(client, "sail", mode, prefix=True, highlights=True)
    marked = {hit["text"][start:end] for hit in hits for start, end in hit["highlights"]}
    assert "sailor" in {word.lower().rstrip("s") for word in marked}
    assert hits != ask(client, "sail", mode, highlights=True)


def test_without_a_mode_a_text_is_searched_in_both_ways_and_an_id_by_its_meaning(
    client: httpx.Client, connect: Callable[..., httpx.Client], corpus: Corpus, tmp_path: Path
) -> None:
    plain = connect(bundle=write_bundle(tmp_path / "bundle", corpus, keywords=None))
    for searched, query, mode in (
        (client, {"text": "angry goose"}, "hybrid"),
        (client, {"text": "angry goose", "highlights": True}, "hybrid"),
        (client, {"id": "story-007", "highlights": True}, "semantic"),
        (plain, {"text": "angry goose", "highlights": True}, "semantic"),
    ):
        without = searched.post("/similar", json=query).json()
        assert searched.post("/similar", json=query | {"mode": mode}).json() == without
        assert searched.post("/similar", json=query | {"mode": None}).json() == without
    assert all("scores" not in hit for mode in ("semantic", "keyword") for hit in ask(client, "angry goose", mode))


def test_each_mode_tells_the_phases_that_it_has(client: httpx.Client) -> None:
    assert phases(client, mode="semantic") == ["parse", "embed", "search", "reply", "total"]
    assert phases(client, mode="keyword") == ["parse", "keyword", "reply", "total"]
    assert phases(client, mode="hybrid") == ["parse", "keyword", "embed", "search", "reply", "total"]
    filtered = ["parse", "filter", "keyword", "embed", "search", "reply", "total"]
    assert phases(client, filter={"chapter": 5}) == filtered


@pytest.mark.parametrize("opened_late", [{"mode": "keyword"}, {"filter": {"chapter": 5}}])
def test_a_bundle_that_was_replaced_is_not_mixed_with_the_loaded_one(
    connect: Callable[..., httpx.Client], bundle_copy: Path, opened_late: dict[str, Any]
) -> None:
    client = connect(bundle=bundle_copy)
    changed = json.loads((bundle_copy / MANIFEST).read_text())
    changed["index"]["corpus"] = "other.csv"
    (bundle_copy / MANIFEST).write_text(json.dumps(changed))
    assert client.post("/similar", json={"text": "goose"} | opened_late).status_code == 500
    assert len(ask(client, "goose", "semantic")) == 5


EXAMPLES = re.findall(r'^{"text": .*"mode": .*}$', (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_of_the_documentation_is_answered(
    connect: Callable[..., httpx.Client], rerank_bundle: Path, example: str
) -> None:
    client = connect(bundle=rerank_bundle)
    reply = client.post("/similar", content=example, headers={"content-type": "application/json"})
    assert reply.status_code == 200
    assert all("angry goose" in hit["text"] for hit in reply.json()["results"]) or "goose" not in example


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_every_mode_finds_only_what_a_filter_keeps(client: httpx.Client, mode: str) -> None:
    def passes(hit: dict[str, Any]) -> bool:
        return bool(hit["metadata"].get("chapter", -1) >= 5)

    everywhere = ask(client, "goose", mode, num_results=100)
    filtered = ask(client, "goose", mode, num_results=100, filter={"chapter": {"$gte": 5}})
    assert filtered
    assert all(map(passes, filtered))
    assert not all(map(passes, everywhere))
    if mode == "keyword":  # a filter does not change scores
        assert filtered == [hit for hit in everywhere if passes(hit)]
