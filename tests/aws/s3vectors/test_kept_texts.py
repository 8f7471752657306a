"""A bundle that keeps its texts and has its embeddings in S3 Vectors returns what the whole bundle returns.

QUERIES=1000 in the environment compares more queries.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.engine.bundle import read_manifest
from semsearch.engine.loading import load
from semsearch.indexing.corpus import Corpus
from semsearch.publishing.bucket import PublishError
from semsearch.publishing.s3vectors import Sent
from tests.app_fixtures import connect_app
from tests.stand_ins.s3vectors import StandIn
from tests.world import STORY_COLUMNS, WHAT, WHO, story_metadata, write_bundle

ROWS = 700  # more than the candidates of both searches, so that they have to be fetched
QUERIES = int(os.environ.get("QUERIES", "20"))  # each filter once

Ask = Callable[..., Any]
REMOTE = "semsearch.aws.s3vectors.index."

SENT_FILTERS: list[dict[str, Any]] = [  # S3 Vectors can apply them
    {"chapter": {"$gte": 30}},
    {"who": {"$in": WHO[:12]}, "true": {"$ne": True}},
    {"$or": [{"places": "sea"}, {"told": {"$lt": "2024-03-05"}}]},
    {"places": {"$exists": False}},
    {"chapter": 7},
]
OWN_FILTERS: list[dict[str, Any]] = [  # S3 Vectors cannot
    {"who": {"$gt": "the c"}},
    {"id": {"$startsWith": "story-01"}},
    {"chapter": {"$in": list(range(101))}},
    {"who": {"$lt": "his"}, "chapter": {"$lt": 9}},
]


def write_texts() -> list[str]:
    """Return texts of the words that the model knows, of numbers that it does not, and some that are equal."""
    pick = random.Random(5)
    words = sorted({word for text in WHAT for word in text.split()})
    texts = [
        f"{pick.choice(WHO)} {' '.join(pick.sample(words, pick.randint(2, 6)))} {pick.randint(0, 99)}"
        for _ in range(ROWS)
    ]
    return [texts[row % 40] if row % 37 == 0 else text for row, text in enumerate(texts)]


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ids = [f"story-{row:04}" for row in range(ROWS)]
    metadata = [
        json.dumps(story_metadata(row % 200) | {"who": WHO[row % 20], "chapter": row % 60}) if row % 10 else "{}"
        for row in range(ROWS)
    ]
    corpus = Corpus(write_texts(), ids, metadata, empty_texts=0, columns=STORY_COLUMNS)
    return write_bundle(tmp_path_factory.mktemp("stories") / "bundle", corpus)


@pytest.fixture(scope="session")
def kept(stories: Path, send: Callable[..., Sent], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle that keeps its texts, whose vectors are in the stand-in."""
    out = tmp_path_factory.mktemp("kept") / "bundle"
    send(stories, "kept", out, keeps_texts=True)
    return out


@pytest.fixture(scope="session")
def clients(stories: Path, kept: Path) -> tuple[httpx.Client, httpx.Client]:
    return connect_app(load(stories)), connect_app(load(kept))


@pytest.fixture(autouse=True)
def large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "page", 100)


@pytest.fixture
def both(clients: tuple[httpx.Client, httpx.Client]) -> Ask:
    """Return what sends a request to the app over the whole bundle and to the other one, and returns both replies."""

    def ask(**request: Any) -> list[Any]:
        return [client.post("/similar", json=request) for client in clients]

    return ask


def numbers(value: Any) -> Iterator[Any]:
    """Yield all scores of a reply, and replace them by None."""
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from numbers(each)
    if isinstance(value, dict):
        for name in ("score", "semantic", "keyword"):
            if isinstance(value.get(name), float):
                yield value[name]
                value[name] = None


def assert_equal(here: httpx.Response, there: httpx.Response) -> None:
    """Replies are equal; a score can differ by the rounding of its last decimal."""
    assert (here.status_code, there.status_code) == (200, 200), there.text
    expected, found = here.json(), there.json()
    assert list(numbers(found)) == pytest.approx(list(numbers(expected)), abs=2.1e-6)
    assert found == expected


def queries(count: int) -> list[str]:
    """Return queries: words of the corpus, numbers that only keywords find, and every tenth with a quotation."""
    pick = random.Random(11)
    words = sorted({word for text in WHAT for word in text.split()})
    found = [f"{' '.join(pick.sample(words, 3))} {pick.randint(0, 99)}" for _ in range(count)]
    return [f'{text} "{pick.choice(words)}"' if number % 10 == 9 else text for number, text in enumerate(found)]


@pytest.mark.parametrize("mode", [pytest.param("semantic", marks=pytest.mark.slow), "hybrid"])
def test_the_same_ten_hits_as_of_the_whole_bundle(both: Ask, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REMOTE + "MOST_RANKED", 200)  # otherwise most of this small corpus
    monkeypatch.setattr(REMOTE + "MOST_FETCHED", 400)
    filters = [*SENT_FILTERS, *OWN_FILTERS]
    for number, text in enumerate(queries(QUERIES)):
        condition = filters[number // 2 % len(filters)] if number % 2 else None
        weight = 0.3 if number % 3 else None  # with more of the words, more results are from the keyword search alone
        here, there = both(text=text, num_results=10, mode=mode, filter=condition, fusion_weight=weight)
        assert here.json()["results"]
        assert_equal(here, there)
    assert StandIn.queries


@pytest.mark.parametrize("condition", OWN_FILTERS)
def test_a_filter_that_the_service_cannot_apply_is_applied_here(both: Ask, condition: dict[str, Any]) -> None:
    assert_equal(*both(text="the baker sold apples", filter=condition, mode="semantic", num_results=20))
    assert not any(query["filter"] for query in StandIn.queries)


def test_a_filter_that_keeps_too_many_rows_keeps_the_closest_ones(both: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REMOTE + "MOST_FETCHED", 10)
    for num_results, pages in ((5, 1), (80, 3)):  # no more pages than needed
        StandIn.queries.clear()
        request = {"text": "the baker sold apples", "mode": "semantic", "filter": {"who": {"$gt": "the c"}}}
        assert_equal(*both(**request, num_results=num_results))
        assert len(StandIn.queries) == pages
    assert not StandIn.get_calls


@pytest.mark.parametrize(("most", "fetches"), [(1, 0), (2, 1), (3, 1)])
def test_all_vectors_are_fetched_of_as_many_rows_as_are_allowed(
    both: Ask, monkeypatch: pytest.MonkeyPatch, most: int, fetches: int
) -> None:
    monkeypatch.setattr(REMOTE + "MOST_FETCHED", most)
    condition = {"who": {"$gt": ""}, "id": {"$in": ["story-0011", "story-0012"]}}
    assert_equal(*both(text="the baker sold apples", filter=condition, mode="semantic"))
    assert (len(StandIn.get_calls), bool(StandIn.queries)) == (fetches, not fetches)


REQUESTS: list[dict[str, Any]] = [
    {"id": "story-0011", "mode": "hybrid", "filter": {"true": True}},
    {"text": "an angry goose 42", "offset": 20, "num_results": 20, "mode": "hybrid"},
    {"text": "an angry goose", "min_score": 0.6, "num_results": 50},
    {"text": "an angry goose 42", "group_by": "who", "num_results": 15, "mode": "hybrid", "filter": {"true": True}},
    {"text": "goose 42", "facets": ["who", "places"], "mode": "hybrid", "highlights": True},
    {"filter": {"who": {"$gt": "the"}}, "sort": {"chapter": "desc"}, "facets": ["true"], "offset": 200},
    {"text": "goose", "sort": {"told": "asc", "chapter": "asc"}, "mode": "keyword"},
    {"text": "gose 42", "mode": "hybrid"},  # a misspelled word
]


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_every_field_works_as_over_the_whole_bundle(both: Ask, request_: dict[str, Any]) -> None:
    assert_equal(*both(**request_))


def test_what_the_service_cannot_do_is_refused(both: Ask) -> None:
    _, reply = both(text="goose", exact=True)
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("exact: found True, expected False; the embeddings are in S3 Vectors")
    assert not StandIn.queries


@pytest.mark.parametrize(("mode", "status"), [("semantic", 429), ("hybrid", 429), ("keyword", 200)])
def test_a_busy_service_stops_only_the_searches_that_need_it(both: Ask, mode: str, status: int) -> None:
    StandIn.busy = 1
    _, reply = both(text="an angry goose", mode=mode)
    StandIn.busy = 0
    assert reply.status_code == status


def test_the_bundle_keeps_its_texts_and_the_service_gets_none(kept: Path, stories: Path, server: str) -> None:
    names = {"manifest.json", "model.ort", "tokenizer.txt"}
    names |= {"passages.safetensors", "columns.safetensors", "keywords.safetensors"}
    assert {path.name for path in kept.iterdir()} == names
    for name in names - {"manifest.json"}:
        assert (kept / name).read_bytes() == (stories / name).read_bytes()
    from tests.publishing.test_s3vectors import stored

    assert all(not {"_text", "_id", "_metadata"} & each["metadata"].keys() for each in stored("kept").values())
    index, before = read_manifest(kept).corpus, read_manifest(stories).corpus
    assert (index.keywords, index.columns) == (before.keywords, before.columns)


def test_it_is_published_again_but_not_with_its_texts(kept: Path, stories: Path, send: Callable[..., Sent]) -> None:
    assert send(stories, "kept", kept, keeps_texts=True).there == ROWS
    with pytest.raises(PublishError, match="holds vectors of another bundle"):
        send(stories, "kept", kept)
