"""POST /similar with a mode: keyword and hybrid search through the app, and what they cost those who do not ask."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.engine.bundle import KEYWORDS, MANIFEST, RRF
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from tests.project import ROOT
from tests.world import write_bundle

CODES = ["Order AB-1234 is late.", "Order AB-1235 came.", "The angry goose ordered nothing."]


def ask(client: httpx.Client, text: str, mode: str, **more: object) -> list[dict[str, Any]]:
    reply = client.post("/similar", json={"text": text, "mode": mode, **more})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["results"]
    return found


def phases(client: httpx.Client, **body: object) -> list[str]:
    reply = client.post("/similar", json={"text": "angry goose", **body})
    return re.findall(r"(\w+);dur=", reply.headers["server-timing"])


@pytest.fixture(scope="module")
def codes(connect: Callable[..., httpx.Client], tmp_path_factory: pytest.TempPathFactory) -> httpx.Client:
    """A client of a corpus with codes that the model does not know."""
    corpus = Corpus(CODES, ["a", "b", "c"], ["{}"] * 3, empty_texts=0)
    return connect(bundle=write_bundle(tmp_path_factory.mktemp("codes") / "bundle", corpus))


def test_the_keyword_mode_finds_a_code_and_nothing_without_its_words(codes: httpx.Client) -> None:
    assert [hit["id"] for hit in ask(codes, "ab-1234", "keyword")] == ["a", "b"]
    assert [hit["id"] for hit in ask(codes, '"1234" order', "keyword")] == ["a"]
    assert ask(codes, "zebra", "keyword") == []


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize("more", [{}, {"highlights": True}])
def test_a_misspelled_word_is_replaced_and_the_reply_says_so(
    codes: httpx.Client, mode: str, more: dict[str, Any]
) -> None:
    reply = codes.post("/similar", json={"text": "an angri gooes", "mode": mode, "num_results": 1, **more}).json()
    assert reply["corrected"] == {"gooes": ["goose"]}
    (hit,) = reply["results"]
    assert hit["id"] == "c"
    if "highlights" in more:
        assert [hit["text"][start:end] for start, end in hit["highlights"]] == ["angry", "goose"]
    right = codes.post("/similar", json={"text": "an angry goose", "mode": mode, "num_results": 1, **more}).json()
    assert "corrected" not in right
    assert [hit["id"] for hit in right["results"]] == ["c"]


@pytest.mark.parametrize("more", [{}, {"highlights": True}])
def test_a_request_can_search_for_misspelled_words_as_they_are(codes: httpx.Client, more: dict[str, Any]) -> None:
    body = {"text": "gooes", "mode": "keyword", "correct": False, **more}
    assert codes.post("/similar", json=body).json() == {"results": [], "truncated": False}


def test_a_hybrid_hit_shows_both_scores_that_its_own_is_made_from(client: httpx.Client, bundle: Path) -> None:
    text = "the angry goose on the ferry"
    semantic = {hit["index"]: hit["score"] for hit in ask(client, text, "semantic", num_results=100)}
    keyword = {hit["index"]: hit["score"] for hit in ask(client, text, "keyword", num_results=100)}
    keywords = load_bundle(bundle).keywords
    assert keywords is not None
    divisor = max(*keyword.values(), 0.7 * keywords.match(text).attainable)
    both = 0
    for hit in ask(client, text, "hybrid", num_results=20):
        scores = hit["scores"]
        assert scores.keys() == {"semantic", "keyword"}
        assert hit["score"] == pytest.approx(0.6 * scores["semantic"] + 0.4 * scores["keyword"] / divisor, abs=1e-5)
        assert semantic.get(hit["index"], scores["semantic"]) == pytest.approx(scores["semantic"], abs=1e-6)
        assert keyword.get(hit["index"], scores["keyword"]) == pytest.approx(scores["keyword"], abs=1e-6)
        both += hit["index"] in semantic and hit["index"] in keyword
    assert both > 5


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
    assert ask(client, "sail ", mode, prefix=True) == ask(client, "sail ", mode)


def test_ranks_have_no_weight(connect: Callable[..., httpx.Client], corpus: Corpus, tmp_path: Path) -> None:
    client = connect(bundle=write_bundle(tmp_path / "bundle", corpus, keywords=KeywordOptions(fusion=RRF)))
    reply = client.post("/similar", json={"text": "goose", "mode": "hybrid", "fusion_weight": 0.5})
    assert reply.status_code == 422
    assert reply.json()["error"] == (
        "fusion_weight: found 0.5, but this bundle combines ranks (rrf); leave it out, or index the texts again "
        "with --fusion convex"
    )


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


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_bundle_without_keywords_refuses_modes_that_need_them(
    connect: Callable[..., httpx.Client], corpus: Corpus, tmp_path: Path, mode: str
) -> None:
    client = connect(bundle=write_bundle(tmp_path / "bundle", corpus, keywords=None))
    assert not (tmp_path / "bundle" / KEYWORDS).exists()
    reply = client.post("/similar", json={"text": "goose", "mode": mode})
    assert reply.status_code == 422
    assert reply.json()["error"].startswith(f"mode: found '{mode}', but this bundle has no keywords; ")
    assert len(ask(client, "goose", "semantic")) == 5


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
