"""Every route and entry point over a bundle without a model: what still works, and what is refused with the reason."""

import json
import logging
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator
from starlette.routing import Route

from semsearch.app.app import App, create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import Settings, SettingsError
from semsearch.engine.loading import load
from tests.app_fixtures import connect_app
from tests.function.events.event_makers import http_api
from tests.no_model import ELSEWHERE
from tests.world import DIM

GOOSE = {"text": "angry goose"}
VECTOR = [0.5] * DIM
NO_MODEL = f"model: this bundle has none, its embeddings are made by {ELSEWHERE}; make them there"
WITH_BOTH = {f"story-{row}" for row in range(150, 160)}  # the texts that have both words

MISSING = {"error": NO_MODEL, "error_type": "not_found"}
OPENAI = {"error": {"message": NO_MODEL, "type": "invalid_request_error", "param": None, "code": None}}
OF_MODEL = {"error": OPENAI["error"] | {"code": "model_not_found"}}
NO_RERANKER = "rerank: an index without a model has no reranker; use another server"
RERANKED = {"query": "goose", "texts": ["a", "b"]}
DOCUMENTS = {"query": "goose", "documents": ["a", "b"]}
TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

# the answer to one request to each route: its body, and the status and the content of the reply, if not seen elsewhere
ANSWERS: dict[tuple[str, str], tuple[Any, int, Any]] = {
    ("POST", "/similar"): (GOOSE, 200, None),
    ("POST", "/predict"): (GOOSE, 404, MISSING),
    ("POST", "/v1/embeddings"): ({"input": "goose"}, 404, OPENAI),
    ("GET", "/v1/models"): (None, 404, OPENAI),
    ("GET", "/v1/models/{name}"): (None, 404, OF_MODEL),
    ("POST", "/embed"): ({"inputs": "goose"}, 404, MISSING),
    ("POST", "/similarity"): ({"inputs": {"source_sentence": "a", "sentences": ["b"]}}, 404, MISSING),
    ("POST", "/"): ({"inputs": "goose"}, 404, MISSING),
    ("POST", "/tokenize"): ({"inputs": "goose"}, 404, MISSING),
    ("POST", "/rerank"): (RERANKED, 424, {"error": NO_RERANKER, "error_type": "backend"}),
    ("POST", "/v1/rerank"): (DOCUMENTS, 424, {"detail": NO_RERANKER}),
    ("POST", "/v2/rerank"): (DOCUMENTS, 424, {"message": NO_RERANKER}),
    ("POST", "/mcp"): (TOOLS, 200, None),
    ("GET", "/.well-known/oauth-protected-resource"): (None, 404, None),
    ("GET", "/.well-known/oauth-protected-resource/mcp"): (None, 404, None),
    ("GET", "/health"): (None, 200, {"status": "ok"}),
    ("GET", "/info"): (None, 200, None),
    ("GET", "/openapi.json"): (None, 200, None),
    ("GET", "/passages/{id}"): (None, 200, None),
    ("GET", "/documents/{path}"): (None, 404, None),
    ("GET", "/"): (None, 200, None),
}
PATHS = {
    "/passages/{id}": "/passages/story-150",
    "/documents/{path}": "/documents/a.md",
    "/v1/models/{name}": "/v1/models/x",
}


def app_over(bundle: Path, settings: Settings | None = None) -> App:
    cold_start = ColdStart(lambda phases: None)
    return create_app(load(bundle), settings or Settings(), logging.getLogger("tests"), cold_start)


def routes_of(app: App) -> set[tuple[str, str]]:
    routes = [route for route in app.fastapi.routes if isinstance(route, Route)]
    return {(method, route.path_format) for route in routes for method in (route.methods or set()) - {"HEAD"}}


@pytest.fixture(scope="module")
def asked(no_model: Path) -> httpx.Client:
    """A client of the app over a bundle without a model."""
    client = connect_app(load(no_model))
    client.get("/health")
    return client


def found(reply: httpx.Response) -> list[str]:
    assert reply.status_code == 200, reply.text
    return [result["id"] for result in reply.json()["results"]]


def test_each_route_of_an_app_has_its_answer_without_a_model(no_model: Path, bundle: Path) -> None:
    assert routes_of(app_over(bundle)) == routes_of(app_over(no_model)) == ANSWERS.keys()


@pytest.mark.parametrize(("method", "path"), ANSWERS, ids=lambda part: str(part).strip("/").replace("/", "-") or "root")
def test_a_route_answers(asked: httpx.Client, method: str, path: str) -> None:
    body, status, content = ANSWERS[method, path]
    reply = asked.request(method, PATHS.get(path, path), json=body)
    assert reply.status_code == status, reply.text
    if content is not None:
        assert reply.json() == content
    # a route that needs the model says the same to a body that it would refuse
    if content == MISSING:
        assert asked.post(path, content=b"?").json() == MISSING


def test_a_text_alone_is_searched_by_words_and_a_vector_by_meaning(asked: httpx.Client) -> None:
    by_words = found(asked.post("/similar", json=GOOSE))
    assert set(by_words) < WITH_BOTH
    assert by_words == found(asked.post("/similar", json=GOOSE | {"mode": "keyword"}))
    both = asked.post("/similar", json=GOOSE | {"vector": VECTOR}).json()["results"]
    assert {name for result in both for name in result["scores"]} == {"semantic", "keyword"}
    assert "scores" not in asked.post("/similar", json={"vector": VECTOR}).json()["results"][0]


def test_a_text_by_meaning_is_refused_with_what_to_send(asked: httpx.Client) -> None:
    for mode in ("semantic", "hybrid"):
        reply = asked.post("/similar", json=GOOSE | {"mode": mode})
        assert reply.status_code == 422
        assert reply.json()["error"] == (
            f"mode: found {mode!r} with a text and no vector, but this bundle has no model to embed the text; "
            f"send its embedding by {ELSEWHERE} as the vector"
        )


def test_info_says_what_is_known_of_the_model_and_nothing_of_limits_that_there_are_not(
    asked: httpx.Client, client: httpx.Client
) -> None:
    info, ordinary = asked.get("/info").json(), client.get("/info").json()
    assert (info["has_model"], ordinary["has_model"]) == (False, True)
    assert info["model"] == {"name": ELSEWHERE, "dim": DIM}
    assert info["limits"].keys() == {"characters", "characters_per_text", "body_bytes", "reply_bytes"}
    assert info["limits"].items() < ordinary["limits"].items()
    gone = {name for name in ordinary if name.startswith(("model_", "max_"))} | {"auto_truncate"}
    assert info.keys() == ordinary.keys() - gone


def test_the_openapi_document_describes_what_is_there(asked: httpx.Client) -> None:
    document = asked.get("/openapi.json").json()
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    answers = {(method, path) for (method, path), (_, status, _) in ANSWERS.items() if status == 200}
    assert described == (answers | {("GET", "/documents/{path}")}) - {("GET", "/openapi.json")}
    schema = OAS31Validator({**document, "$ref": "#/components/schemas/InfoWithoutModelReply"})
    schema.validate(asked.get("/info").json())
    request = OAS31Validator({**document, "$ref": "#/components/schemas/SimilarRequest"})
    for body in SEARCHES:
        assert request.is_valid(body) == (asked.post("/similar", json=body).status_code == 200), body


def test_the_openapi_document_allows_no_text_where_there_are_no_words(no_model_no_words: Path) -> None:
    client = connect_app(load(no_model_no_words))
    request = OAS31Validator({**client.get("/openapi.json").json(), "$ref": "#/components/schemas/SimilarRequest"})
    for body in SEARCHES:
        if body.get("mode") in (None, "semantic"):
            assert request.is_valid(body) == (client.post("/similar", json=body).status_code == 200), body


# with all combinations of what says what a query is
SEARCHES = [
    {
        name: value
        for name, value in zip(("text", "id", "vector", "mode", "queries", "min_score"), values, strict=True)
        if value
    }
    for values in product(
        (None, "goose"),
        (None, "story-150"),
        (None, VECTOR),
        (None, "semantic", "keyword", "hybrid"),
        (None, "model"),
        (None, 0.1),
    )
]


def call(client: httpx.Client, name: str, arguments: dict[str, Any]) -> Any:
    message = TOOLS | {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
    result = client.post("/mcp", json=message).json()["result"]
    text = result["content"][0]["text"]
    return text if result["isError"] else json.loads(text)


def test_mcp_searches_by_words_and_promises_no_meaning(asked: httpx.Client) -> None:
    tools = {tool["name"]: tool for tool in asked.post("/mcp", json=TOOLS).json()["result"]["tools"]}
    own = tools["search_stories"]
    assert own["description"].startswith(
        "Search the 200 texts of stories.csv, and return those with the words of a text."
    )
    assert own["inputSchema"]["properties"]["mode"]["enum"] == ["keyword"]
    assert not [tool for tool in tools.values() if "meaning" in json.dumps(tool)]
    hits = call(asked, "search_stories", GOOSE)["results"]
    assert {hit["id"] for hit in hits} < WITH_BOTH
    assert {hit["id"] for hit in call(asked, "search", {"query": "angry goose"})["results"]} == WITH_BOTH
    assert call(asked, "fetch", {"id": "story-150"})["id"] == "story-150"
    assert call(asked, "search_stories", GOOSE | {"mode": "hybrid"}).startswith("mode: found 'hybrid' with a text")


def test_mcp_offers_no_text_where_there_are_no_words(no_model_no_words: Path) -> None:
    client = connect_app(load(no_model_no_words))
    own, *_ = client.post("/mcp", json=TOOLS).json()["result"]["tools"]
    assert "text" not in own["inputSchema"]["properties"]
    assert "that a filter chooses" in own["description"]
    assert call(client, "search_stories", {"id": "story-150"})["results"]
    refused = call(client, "search_stories", GOOSE)
    assert refused.startswith("text: found without a vector, but this bundle has neither a model nor keywords; send")


def test_max_tokens_is_not_compared_with_a_model_that_is_not_there(no_model: Path, bundle: Path) -> None:
    assert app_over(no_model, Settings(max_tokens=1))
    with pytest.raises(SettingsError, match="MAX_TOKENS"):
        app_over(bundle, Settings(max_tokens=1))


ALL_REQUESTS = """
import json, logging, sys
from types import SimpleNamespace
from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import read_settings
from semsearch.engine.loading import load
from function.events import make_handler
bundle = load(read_settings().bundle_dir)
bundle.open_all()
app = create_app(bundle, read_settings(), logging.getLogger("tests"), ColdStart(lambda phases: None))
handler, context = make_handler(app, "/", is_closed=False), SimpleNamespace(aws_request_id=None)
statuses = [handler(event, context)["statusCode"] for event in json.loads(sys.argv[1])]
print(json.dumps([statuses, [name for name in sys.modules if name.startswith(("onnxruntime", "tokenizers"))]]))
"""


def test_no_request_imports_onnxruntime_or_tokenizers(in_a_new_process: Callable[..., Any], no_model: Path) -> None:
    events = [
        http_api(method, PATHS.get(path, path), None if body is None else json.dumps(body))
        for (method, path), (body, _, _) in ANSWERS.items()
    ]
    script = ALL_REQUESTS.replace("sys.argv[1]", repr(json.dumps(events)))
    statuses, imported = in_a_new_process(script, BUNDLE_DIR=str(no_model))
    assert statuses == [status for _, status, _ in ANSWERS.values()]
    assert imported == []
