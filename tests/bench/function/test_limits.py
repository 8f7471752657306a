"""The costliest requests are those that the settings just accept, for each route that there is."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from bench.function.limits import LOTS, Request, make_requests, measure
from export.corpus import Corpus
from function.app import App
from function.engine.bundle import Manifest
from function.engine.metadata.filters import MOST_VALUES
from function.settings import CHARACTERS_PER_TEXT, Settings
from tests.conftest import write_bundle

LIMIT = 4096  # for the tiny model, which reads fewer tokens of a text than real ones
SERVED = Settings(max_tokens=70_000)  # enough for a text of Chinese characters
LIMITED = Settings(max_tokens=LIMIT, max_texts=200)


@pytest.fixture(scope="module")
def lots(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    metadata = [json.dumps({"lot": row % LOTS}) for row in range(len(corpus.texts))]
    numbered = Corpus(corpus.texts, corpus.ids, metadata, empty_texts=0, columns={"lot": "number"})
    return write_bundle(tmp_path_factory.mktemp("lots") / "bundle", numbered)


@pytest.fixture
def requests(corpus: Corpus, manifest: Manifest) -> list[Request]:
    return list(make_requests(corpus.texts, manifest.model.max_tokens, SERVED, LIMITED))


def test_each_route_has_its_costliest_requests(make_app: Callable[..., App], requests: list[Request]) -> None:
    app = make_app().fastapi
    routes = {(method, each.path) for each in app.routes if isinstance(each, APIRoute) for method in each.methods or ()}
    measured = {(request.method, request.path) for request in requests}
    # /v1/models/... does what /v1/models does; the other two read stored texts by their names
    named = {"/v1/models/{name:path}", "/passages/{id:path}", "/documents/{path:path}"}
    reranked = {"/rerank", "/v1/rerank", "/v2/rerank"}  # `bench rerank` measures these
    assert routes <= measured | {("GET", path) for path in named} | {("POST", path) for path in reranked}


def test_all_are_accepted(lots: Path, requests: list[Request]) -> None:
    measure(replace(SERVED, bundle_dir=lots), requests, rounds=0)


def test_each_round_measures_each_request(lots: Path, requests: list[Request]) -> None:
    seen = measure(Settings(bundle_dir=lots), requests[:3], rounds=2)
    assert [(len(one.seconds), len(one.blocked)) for one in seen] == [(2, 2)] * 3
    assert min(seconds for one in seen for seconds in one.seconds) > 0


def test_a_request_that_is_refused_ends_the_measurement(lots: Path) -> None:
    with pytest.raises(SystemExit, match="similar, keyword, blanks: the app answered 422"):
        measure(
            Settings(bundle_dir=lots),
            [Request("POST", "/similar", "keyword", "blanks", {"text": " "})],
            rounds=0,
        )


def test_with_a_little_more_they_are_refused(
    connect: Callable[..., httpx.Client], lots: Path, requests: list[Request]
) -> None:
    client = connect(bundle=lots, settings=LIMITED)
    by_content = {(request.path, request.content): request.body for request in requests}
    all_tokens = by_content["/predict", "all tokens"]["text"]
    all_characters = by_content["/predict", "all characters"]["text"]
    one_list = by_content["/similar", "one list"]
    for path, body, status in (
        ("/predict", {"text": [*all_tokens, "word " * 100]}, 413),
        ("/predict", {"text": [*all_characters, "q" * 5_000]}, 413),
        ("/similar", {"text": "q" * (CHARACTERS_PER_TEXT + 1)}, 413),
        ("/similar", {"text": "q", "filter": {"lot": {"$in": [*one_list["filter"]["lot"]["$in"], 1, 2, 3]}}}, 422),
    ):
        assert client.post(path, json=body).status_code == status
    assert len(one_list["filter"]["lot"]["$in"]) + 3 == MOST_VALUES
