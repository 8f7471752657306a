"""The Lambda entry point: events as AWS sends them, and what a cold start may and may not do."""

import ast
import asyncio
import base64
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from function.events import make_handler
from function.settings import LAMBDA_BODY_LIMIT, LAMBDA_REPLY_LIMIT
from tests.function.event_makers import HEADERS, MAKERS, Event, http_api, load_balancer, load_balancer_with_lists

ROOT = Path(__file__).parents[2]
Handler = Callable[[Event, object], dict[str, Any]]


@dataclass(frozen=True)
class Context:
    """What of Lambda's context object is read."""

    aws_request_id: str = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"


every_event = pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])


@pytest.fixture(scope="module")
def handler(bundle: Path) -> Iterator[Handler]:
    """The module's handler, imported as Lambda imports it: once, with the bundle in the environment."""
    with pytest.MonkeyPatch.context() as patch, closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)  # Mangum would make one, and leave it open
        patch.setenv("BUNDLE_DIR", str(bundle))
        patch.delitem(sys.modules, "function.handler", raising=False)
        module = importlib.import_module("function.handler")
        module.handler(http_api("GET", "/health", None), Context())  # the first reply tells of the cold start too
        yield module.handler
        del sys.modules["function.handler"]
        gc.unfreeze()  # undoes function.startup.no_garbage_collection, which a process does once in its life
        asyncio.set_event_loop(None)


REQUESTS: dict[str, tuple[str, str, str | None]] = {
    "similar": ("POST", "/similar", '{"text": "An old sailor lost a key 🦆", "num_results": 3}'),
    "predict": ("POST", "/predict", '{"text": ["żółć", "the ferry"]}'),
    "health": ("GET", "/health", None),
    "a field out of its range": ("POST", "/similar", '{"text": "a", "num_results": 0}'),
    "not JSON": ("POST", "/similar", "{"),
    "no body": ("POST", "/similar", None),
    "no route": ("GET", "/nothing", None),
    "another method": ("GET", "/similar", None),
}


@every_event
@pytest.mark.parametrize("kind", REQUESTS)
def test_every_kind_of_event_gets_the_answer_that_http_gets(
    handler: Handler, client: httpx.Client, make: Callable[..., Event], kind: str
) -> None:
    method, path, body = REQUESTS[kind]
    found = handler(make(method, path, body), Context())
    expected = client.request(method, path, content=body, headers=HEADERS)
    assert found["statusCode"] == expected.status_code
    assert found["isBase64Encoded"] is False
    assert found["body"] == expected.text


@every_event
def test_a_body_in_base64_is_the_body_it_stands_for(handler: Handler, make: Callable[..., Event]) -> None:
    body = '{"text": "An old sailor lost a key 🦆"}'
    encoded = make("POST", "/similar", base64.b64encode(body.encode()).decode()) | {"isBase64Encoded": True}
    plain = handler(make("POST", "/similar", body), Context())
    assert plain["statusCode"] == 200
    assert handler(encoded, Context())["body"] == plain["body"]


@every_event
@pytest.mark.parametrize("body", ["a", "żółć", '{"text": "goose"}', "%%%", "eyJ0ZXh0IjogImdvb3NlIn0=%"])
def test_a_body_that_is_not_the_base64_it_claims_to_be_is_refused(
    handler: Handler, make: Callable[..., Event], body: str
) -> None:
    for _ in range(2):
        found = handler(make("POST", "/similar", body) | {"isBase64Encoded": True}, Context())
        headers = found.get("headers") or {name: value for name, (value,) in found["multiValueHeaders"].items()}
        assert (found["statusCode"], json.loads(found["body"])["error_type"]) == (400, "bad_request")
        assert "body: not base64, though isBase64Encoded is true; expected JSON" in json.loads(found["body"])["error"]
        assert headers["server-timing"].startswith("total;dur=")


def test_a_reply_that_no_event_can_carry_is_an_error_and_no_refusal(handler: Handler) -> None:
    async def reply_with_a_header_of_other_bytes(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-name", b"\xff")]})
        await send({"type": "http.response.body", "body": b""})

    made = make_handler(reply_with_a_header_of_other_bytes, base_path="/")
    with pytest.raises(UnicodeDecodeError):
        made(http_api("GET", "/health", None), Context())  # type: ignore[arg-type]


@every_event
def test_what_comes_around_a_body_fits_in_the_room_left_for_it(handler: Handler, make: Callable[..., Event]) -> None:
    whole = handler(make("POST", "/similar", '{"text": "goose"}'), Context())
    assert len(json.dumps(whole)) - len(json.dumps(whole["body"])) < LAMBDA_BODY_LIMIT - LAMBDA_REPLY_LIMIT


@every_event
def test_the_reply_to_an_event_has_the_headers_of_the_app(handler: Handler, make: Callable[..., Event]) -> None:
    found = handler(make("POST", "/similar", '{"text": "goose"}'), Context())
    headers = found.get("headers") or {name: value for name, (value,) in found["multiValueHeaders"].items()}
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == Context().aws_request_id
    assert [phase.partition(";")[0] for phase in headers["server-timing"].split(", ")] == [
        *("parse", "embed", "search", "reply", "total")
    ]


def test_a_load_balancer_gets_its_headers_in_the_form_it_sends_them(handler: Handler) -> None:
    assert "multiValueHeaders" not in handler(load_balancer("GET", "/health", None), Context())
    assert "headers" not in handler(load_balancer_with_lists("GET", "/health", None), Context())


@every_event
def test_an_event_over_the_body_limit_is_refused(handler: Handler, make: Callable[..., Event]) -> None:
    found = handler(make("POST", "/similar", json.dumps({"text": "a" * 1024 * 1024})), Context())
    assert found["statusCode"] == 413
    assert json.loads(found["body"])["error_type"] == "too_large"


def test_info_shows_each_phase_of_the_cold_start(handler: Handler) -> None:
    info = json.loads(handler(http_api("GET", "/info", None), Context())["body"])
    phases = info["cold_start_milliseconds"]
    assert list(phases) == ["import-engine", "import-http", "model", "app", "warm-up"]
    assert all(milliseconds >= 0 for milliseconds in phases.values())


def run(script: str, bundle: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, as a cold start does, warnings being errors."""
    mangum = "ignore:There is no current event loop:DeprecationWarning"  # since Python 3.12; it makes one
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", mangum, "-c", script],
        cwd=ROOT,
        env=os.environ | {"BUNDLE_DIR": str(bundle)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_missing_bundle_fails_the_cold_start_and_says_what_to_do(tmp_path: Path) -> None:
    bundle = tmp_path / "none"
    failed = run("import function.handler", bundle)
    assert failed.returncode == 1
    message = f"BundleError: {bundle}: is not a folder; make a bundle with `python -m export --out {bundle}`"
    assert failed.stderr.rstrip().endswith(message)


def test_a_wrong_setting_fails_the_cold_start_and_is_named(bundle: Path) -> None:
    failed = run("import function.handler", bundle, MAX_TEXTS="many")
    assert failed.returncode == 1
    assert "SettingsError: MAX_TEXTS: 'many', expected a whole number from 1 to 10000" in failed.stderr


def test_fewer_tokens_than_one_text_may_have_fail_the_cold_start(bundle: Path) -> None:
    failed = run("import function.handler", bundle, MAX_TOKENS="23")
    assert failed.returncode == 1
    assert "SettingsError: MAX_TOKENS: 23, expected 24 or more" in failed.stderr


def test_no_module_of_the_function_imports_the_export() -> None:
    sources = list((ROOT / "function").rglob("*.py"))
    assert len(sources) > 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert not any(name.partition(".")[0] in ("export", "bench", "tests") for name in names), source


def test_a_request_is_logged_as_one_line_of_json_with_lambdas_request_id(bundle: Path) -> None:
    script = f"""
from types import SimpleNamespace
from function.handler import handler
context = SimpleNamespace(aws_request_id="c6af9ac6")
handler({http_api("POST", "/similar", '{"text": "goose"}')!r}, context)
"""
    found = run(script, bundle)
    assert found.returncode == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    (request,) = (line for line in lines if line.get("message") == "request")
    assert (request["level"], request["service"]) == ("INFO", "semantic-search")
    assert (request["method"], request["path"], request["status"]) == ("POST", "/similar", 200)
    assert (request["payload_bytes"], request["request_id"]) == (17, "c6af9ac6")
    assert list(request["phases"]) == ["parse", "embed", "search", "reply"]


def test_the_first_request_tells_of_the_start_in_one_line_and_one_set_of_metrics(bundle: Path) -> None:
    script = f"""
from function.handler import handler
for _ in range(3):
    handler({http_api("GET", "/health", None)!r}, None)
"""
    found = run(script, bundle, POWERTOOLS_SERVICE_NAME="stories", POWERTOOLS_METRICS_NAMESPACE="Library")
    assert found.returncode == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    start, metrics, *requests = lines
    assert (start["message"], start["service"]) == ("cold start", "stories")
    milliseconds = start["milliseconds"]
    assert list(milliseconds) == ["import-engine", "import-http", "model", "app", "warm-up", "total"]
    assert milliseconds.pop("total") == pytest.approx(sum(milliseconds.values()), abs=0.05)  # each was rounded
    assert [request["cold_start"] for request in requests] == [True, False, False]

    # the format: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    (directive,) = metrics["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Library"
    assert [set(dimensions) for dimensions in directive["Dimensions"]] == [{"service", "ColdStart"}]
    assert (metrics["service"], metrics["ColdStart"]) == ("stories", "true")
    names = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    assert names == dict.fromkeys(
        ["InitImportEngine", "InitImportHttp", "InitModel", "InitApp", "InitWarmUp", "InitTotal"], "Milliseconds"
    )
    assert [metrics[f"Init{phase}"] for phase in ("ImportEngine", "Model")] == [
        [milliseconds["import-engine"]],
        [milliseconds["model"]],
    ]


def test_a_request_leaves_one_line_also_where_lambda_logs_everything(bundle: Path) -> None:
    script = f"""
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout)  # as Lambda's runtime does with JSON logs
from function.handler import handler
for _ in range(2):
    print("--")
    handler({http_api("GET", "/health", None)!r}, None)
"""
    found = run(script, bundle)
    assert found.returncode == 0, found.stderr
    _, _, second = found.stdout.split("--\n")
    assert [json.loads(line)["message"] for line in second.splitlines()] == ["request"]


def test_a_warm_up_that_fails_fails_the_start(bundle: Path) -> None:
    script = """
import function.engine.index
def search(self, query, top_k):
    raise OSError("the disk is gone")
function.engine.index.Index.search = search
import function.handler
"""
    failed = run(script, bundle)
    assert failed.returncode == 1
    assert "the disk is gone" in failed.stderr
