"""The costliest requests are those that the settings just accept, for each route that there is."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from bench.function.limits import LOTS, Request, make_requests, measure
from export.corpus import Corpus
from function.engine.bundle import Manifest
from function.routes.lazy_routes import add_lazy_routes
from function.settings import Settings
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


def test_each_route_has_its_costliest_requests(make_app: Callable[..., FastAPI], requests: list[Request]) -> None:
    app = make_app()
    add_lazy_routes(app)
    routes = {(method, each.path) for each in app.routes if isinstance(each, APIRoute) for method in each.methods or ()}
    measured = {(request.method, request.path) for request in requests}
    # /v1/models/... does what /v1/models does; the other two read stored texts by their names
    named = {"/v1/models/{name:path}", "/passages/{id:path}", "/documents/{path:path}"}
    reranked = {"/rerank", "/v1/rerank", "/v2/rerank"}  # `bench rerank` measures these
    assert routes <= measured | {("GET", path) for path in named} | {("POST", path) for path in reranked}


def test_all_are_accepted(lots: Path, requests: list[Request]) -> None:
    measure(replace(SERVED, bundle_dir=lots), requests, rounds=0)


def test_a_request_that_is_refused_ends_the_measurement(lots: Path) -> None:
    with pytest.raises(SystemExit, match="similar, keyword, blanks: the app answered 422"):
        measure(
            Settings(bundle_dir=lots),
            [Request("POST", "/similar", "keyword", "blanks", {"text": " "})],
            rounds=0,
        )
