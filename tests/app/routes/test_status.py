"""GET /health, GET /info, /openapi.json, and what has no route."""

import json
import logging
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.routes.status import REPORTED
from semsearch.app.settings import Settings
from semsearch.engine.bundle import Manifest
from semsearch.engine.loading import load
from semsearch.version import VERSION
from tests.world import InProcess


def test_info_shows_the_manifest(client: httpx.Client, manifest: Manifest) -> None:
    info = client.get("/info").json()
    stated = manifest.as_json()
    assert {key: info[key] for key in stated} == stated
    as_tei_says = {
        "model_id": manifest.model.name,
        "model_sha": None,
        "model_dtype": "none",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_input_length": 24,
        "max_client_batch_size": 2048,
        "auto_truncate": True,
    }
    assert {key: info[key] for key in as_tei_says} == as_tei_says
    others = {"has_model", "made", "limits", "versions", "archive", "cold_start_milliseconds"}
    assert info.keys() == {*stated, *as_tei_says, *others}
    assert "x-bundle" not in client.get("/health").headers  # only bundles in S3 have versions


def test_info_shows_what_an_operator_asks_for(bundle: Path, tmp_path: Path) -> None:
    image = tmp_path / "image.json"
    cold_start = ColdStart(lambda phases: None, "used")
    cold_start.end({"model": 2.346, "total": 3.0})
    app = create_app(load(bundle), Settings(), logging.getLogger("tests"), cold_start, image=image)
    client = httpx.Client(transport=InProcess(app), base_url="http://tests")
    assert "image" not in client.get("/info").json()
    image.write_text('{"version": "1.0"}')
    info = client.get("/info").json()
    assert (info["image"], info["archive"]) == ({"version": "1.0"}, "used")
    assert info["cold_start_milliseconds"] == {"model": 2.35, "total": 3.0}


def test_the_version_of_the_package_is_in_info_and_in_the_description_of_the_api(client: httpx.Client) -> None:
    versions = client.get("/info").json()["versions"]
    assert versions.pop("semsearch") == VERSION
    assert versions == {"python": platform.python_version()} | {name: version(name) for name in REPORTED}
    assert client.get("/openapi.json").json()["info"]["version"] == VERSION


def test_info_shows_the_limits_that_are_set(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_texts=3, max_tokens=40, max_body_bytes=500, max_reply_bytes=2_000))
    limits = client.get("/info").json()["limits"]
    assert limits | {"characters_per_text": 65_536} == limits
    names = ("texts", "embeddings", "tokens", "characters", "body_bytes", "reply_bytes")
    assert [limits[name] for name in names] == [
        3,
        2,
        40,
        640,
        500,
        2_000,
    ]  # an embedding of 48 values takes 820 at most


@pytest.mark.parametrize("path", ["/nothing", "/health/", "/żółć", "/" + "a" * 59, "/" + "health" * 10_000])
def test_a_path_without_a_route_is_not_found_and_those_that_have_one_are_named(client: httpx.Client, path: str) -> None:
    reply = client.get(path)
    shown = path if len(path) <= 60 else path[:60] + "…"
    assert (reply.status_code, reply.json()["error_type"]) == (404, "not_found")
    error = reply.json()["error"]
    assert reply.content == json.dumps(reply.json(), ensure_ascii=False, separators=(",", ":")).encode()
    assert error.startswith(f"GET {shown}: there is no such path, expected ")
    assert error.endswith("; request one of these")
    named = error.partition(", expected ")[2].partition("; ")[0].split(", ")
    assert len(named) == len(set(named))
    assert set(named) >= client.get("/openapi.json").json()["paths"].keys()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/similar", "POST"), ("OPTIONS", "/similar", "POST"), ("PUT", "/", "GET, HEAD, POST")],
)
def test_another_method_is_refused_with_those_that_are_allowed(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    reply = client.request(method, path)
    error = f"{method} {path}: method not allowed, expected {allowed}; use that method"
    expected = {"error": error, "error_type": "method_not_allowed"}
    assert (reply.status_code, reply.json(), reply.headers["allow"]) == (405, expected, allowed)


def test_head_is_answered_like_get_without_a_body(client: httpx.Client) -> None:
    got, head = client.get("/info"), client.head("/info")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == got.headers[name]
    assert "total;dur=" in head.headers["server-timing"]
