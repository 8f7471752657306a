"""GET /health, GET /info, /openapi.json, and what has no route."""

import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import httpx
import pytest

from function.engine.bundle import Manifest


def test_health_says_ok(client: httpx.Client) -> None:
    reply = client.get("/health")
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"})


def test_info_shows_the_manifest(client: httpx.Client, manifest: Manifest) -> None:
    info = client.get("/info").json()
    stated = asdict(manifest)
    assert {key: info[key] for key in stated} == stated
    assert info.keys() == {*stated, "versions", "cold_start_milliseconds"}


def test_info_shows_the_versions_behind_the_answers(client: httpx.Client) -> None:
    versions = client.get("/info").json()["versions"]
    assert versions["python"] == platform.python_version()
    for name in ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum"):
        assert versions[name] == version(name)


def test_info_shows_the_phases_of_the_cold_start_in_milliseconds(client: httpx.Client) -> None:
    # conftest.py starts the app with these phases
    assert client.get("/info").json()["cold_start_milliseconds"] == {"imports": 1.0, "model": 2.35}


@pytest.fixture(scope="module")
def openapi(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_the_openapi_document_has_the_four_routes(openapi: dict[str, Any]) -> None:
    routes = {(method, path) for path, methods in openapi["paths"].items() for method in methods}
    assert routes == {("post", "/similar"), ("post", "/predict"), ("get", "/health"), ("get", "/info")}


@pytest.mark.parametrize(
    ("path", "request_fields", "reply_fields"),
    [
        ("/similar", {"text", "num_results"}, {"results", "truncated"}),
        ("/predict", {"text", "prompt_name"}, {"embeddings", "truncated"}),
    ],
)
def test_the_openapi_document_describes_requests_and_replies(
    openapi: dict[str, Any], path: str, request_fields: set[str], reply_fields: set[str]
) -> None:
    def fields(message: dict[str, Any]) -> set[str]:
        name = message["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return set(openapi["components"]["schemas"][name]["properties"])

    route = openapi["paths"][path]["post"]
    assert fields(route["requestBody"]) == request_fields
    assert fields(route["responses"]["200"]) == reply_fields


def test_the_openapi_document_states_the_bounds_of_num_results(openapi: dict[str, Any]) -> None:
    num_results = openapi["components"]["schemas"]["SimilarRequest"]["properties"]["num_results"]
    assert (num_results["minimum"], num_results["maximum"], num_results["default"]) == (1, 100, 5)


@pytest.mark.parametrize("path", ["/", "/nothing", "/similar/more", "/docs", "/redoc"])
def test_a_path_without_a_route_is_not_found(client: httpx.Client, path: str) -> None:
    reply = client.get(path)
    assert (reply.status_code, reply.json()) == (404, {"error": f"GET {path}: Not Found", "error_type": "not_found"})


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/similar", "POST"), ("PUT", "/predict", "POST"), ("POST", "/health", "GET"), ("DELETE", "/info", "GET")],
)
def test_another_method_is_refused_with_the_one_that_is_allowed(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    reply = client.request(method, path)
    expected = {"error": f"{method} {path}: Method Not Allowed", "error_type": "method_not_allowed"}
    assert (reply.status_code, reply.json(), reply.headers["allow"]) == (405, expected, allowed)
