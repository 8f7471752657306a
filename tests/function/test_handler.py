"""The Lambda entry point: replies to events, settings, and the log lines and metrics of a cold start.

The sample events in function/sample_events/ have the fields of AWS's own examples, with other values:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
https://docs.aws.amazon.com/lambda/latest/dg/services-alb.html
https://docs.aws.amazon.com/vpc-lattice/latest/ug/lambda-functions.html
https://docs.aws.amazon.com/bedrock/latest/userguide/agents-lambda.html
"""

import asyncio
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import VPCLatticeResolver, VPCLatticeV2Resolver
from aws_lambda_powertools.utilities.data_classes import VPCLatticeEvent, VPCLatticeEventV2
from snapshot_restore_py import get_after_restore

from semsearch.app.settings import LAMBDA_BODY_LIMIT, LAMBDA_REPLY_LIMIT
from tests.function.events.event_makers import MAKERS, Event, http_api
from tests.function.events.test_agents import result
from tests.project import ROOT

Answer = Callable[[Event], dict[str, Any]]

every_event = pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])


@pytest.fixture(scope="module")
def ask(bundle: Path) -> Iterator[Answer]:
    """Return what calls the module's handler, imported as Lambda imports it: once, with settings in the environment."""
    with pytest.MonkeyPatch.context() as patch, closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)  # Mangum would create one and leave it open
        patch.setenv("BUNDLE_DIR", str(bundle))
        patch.setenv("API_BASE_PATH", "/base")
        patch.delitem(sys.modules, "function.handler", raising=False)
        module = importlib.import_module("function.handler")
        context = SimpleNamespace(aws_request_id="c6af9ac6")
        module.handler(http_api("GET", "/health", None), context)  # the first reply has the phases of the start too
        yield lambda event: module.handler(event, context)
        del sys.modules["function.handler"]
        gc.unfreeze()  # undoes function.startup.no_garbage_collection, which a process calls once
        asyncio.set_event_loop(None)


SAMPLES = {path.stem: json.loads(path.read_bytes()) for path in (ROOT / "function" / "sample_events").iterdir()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_event_of_each_source_is_answered(ask: Answer, name: str) -> None:
    reply = ask(SAMPLES[name])
    match name:
        case "bedrock-agent":
            status, body = result(reply)
        case "bedrock-agent-function":
            outcome = reply["response"]["functionResponse"]
            status, body = 200, outcome["responseBody"]["TEXT"]["body"]
            assert "responseState" not in outcome
        case _:
            status, body = reply["statusCode"], reply["body"]
    assert status == 200
    assert body == '{"status":"ok"}' if name.endswith("-health") else body.count('"text":') == 3


@pytest.mark.parametrize(
    ("name", "event_class", "resolver"),
    [
        ("vpc-lattice", VPCLatticeEventV2, VPCLatticeV2Resolver),
        ("vpc-lattice-v1", VPCLatticeEvent, VPCLatticeResolver),
    ],
)
def test_powertools_reads_and_answers_an_event_of_vpc_lattice_in_the_same_way(
    ask: Answer, name: str, event_class: Callable[..., Any], resolver: Callable[..., Any]
) -> None:
    read: Any = event_class(SAMPLES[name])
    as_http_api = http_api(read.http_method, read.path, read.body)
    reply = ask(SAMPLES[name])
    assert reply["body"] == ask(as_http_api)["body"]

    def similar() -> Any:
        return json.loads(reply["body"])

    app = resolver()
    app.post("/similar")(similar)
    expected = app.resolve(SAMPLES[name], SimpleNamespace())
    assert reply.keys() == expected.keys() - {"cookies"}  # an empty list
    assert (reply["statusCode"], reply["isBase64Encoded"]) == (expected["statusCode"], expected["isBase64Encoded"])
    assert json.loads(reply["body"]) == json.loads(expected["body"])
    assert reply["headers"]["content-type"] == expected["headers"]["Content-Type"]


@every_event
def test_a_reply_has_the_headers_of_the_app_and_fits_in_the_limit(ask: Answer, make: Callable[..., Event]) -> None:
    reply = ask(make("POST", "/similar", '{"text": "goose"}'))
    assert len(json.dumps(reply)) - len(json.dumps(reply["body"])) < LAMBDA_BODY_LIMIT - LAMBDA_REPLY_LIMIT
    headers = reply.get("headers") or {name: value for name, (value,) in reply["multiValueHeaders"].items()}
    assert (headers["content-type"], headers["x-request-id"]) == ("application/json", "c6af9ac6")
    phases = [phase.partition(";")[0] for phase in headers["server-timing"].split(", ")]
    assert phases == ["parse", "keyword", "embed", "search", "reply", "total"]


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process, where warnings are errors, as a cold start does."""
    mangum = "ignore:There is no current event loop:DeprecationWarning"  # since Python 3.12; Mangum creates one
    command = [sys.executable, "-W", "error", "-W", mangum, "-c", script]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        (
            {"BUNDLE_DIR": "/none"},
            "BundleError: /none: is not a folder; make a bundle with `semsearch index PATH --out ",
        ),
        ({"BUNDLE_DIR": "s3://bucket/prefix"}, "there are no AWS credentials"),
        ({"MAX_BODY_BYTES": "10"}, "RuntimeError: warm-up: the handler answered 413, expected 200"),
    ],
)
def test_a_cold_start_that_cannot_succeed_fails_with_the_reason(
    bundle: Path, environment: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:  # fixtures of other tests set credentials
        monkeypatch.delenv(name)
    failed = run("import function.handler", **{"BUNDLE_DIR": str(bundle)} | environment)
    assert failed.returncode == 1
    assert reason in failed.stderr


def test_a_start_leaves_no_thread_and_keeps_no_bundle_that_can_be_replaced(ask: Answer) -> None:
    module: Any = sys.modules["function.handler"]
    assert not {"bundle", "opening"} & vars(module).keys()
    assert module.image == ROOT / "image.json"
    with pytest.raises(RuntimeError, match="after shutdown"):
        module.background.submit(print)


def test_without_snap_start_there_is_no_hook(ask: Answer) -> None:
    assert list(get_after_restore()) == []


START = f"""
import logging, sys
from types import SimpleNamespace
logging.basicConfig(level=logging.INFO, stream=sys.stdout)  # as Lambda's runtime does with JSON logs
from function.handler import handler
for event in {[*[http_api("GET", "/health", None)] * 2, http_api("POST", "/similar", '{"text": "goose"}')]!r}:
    handler(event, SimpleNamespace(aws_request_id="c6af9ac6"))
"""


def test_each_request_leaves_a_line_of_json_and_the_first_one_reports_the_start_in_a_line_and_a_set_of_metrics(
    bundle: Path,
) -> None:
    names = {"POWERTOOLS_SERVICE_NAME": "stories", "POWERTOOLS_METRICS_NAMESPACE": "Library"}
    found = run(START, BUNDLE_DIR=str(bundle), **names)
    assert found.returncode == 0, found.stderr
    start, metrics, *requests = [json.loads(line) for line in found.stdout.splitlines()]
    assert (start["message"], start["service"]) == ("cold start", "stories")
    milliseconds = start["milliseconds"]
    assert list(milliseconds) == ["import-engine", "import-http", "model", "app", "warm-up", "total"]
    assert milliseconds.pop("total") == pytest.approx(sum(milliseconds.values()), abs=0.05)  # each was rounded

    assert [request["cold_start"] for request in requests] == [True, False, False]
    request = requests[2]
    assert (request["level"], request["service"], request["message"]) == ("INFO", "stories", "request")
    assert (request["method"], request["path"], request["status"]) == ("POST", "/similar", 200)
    assert (request["payload_bytes"], request["request_id"]) == (17, "c6af9ac6")
    assert list(request["phases"]) == ["parse", "keyword", "embed", "search", "reply"]

    # the format: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    (directive,) = metrics["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Library"
    assert [set(dimensions) for dimensions in directive["Dimensions"]] == [{"service", "ColdStart"}]
    assert (metrics["service"], metrics["ColdStart"]) == ("stories", "true")
    phases = ["InitImportEngine", "InitImportHttp", "InitModel", "InitApp", "InitWarmUp", "InitTotal"]
    found_metrics = [(metric["Name"], metric["Unit"]) for metric in directive["Metrics"]]
    assert sorted(found_metrics) == sorted((phase, "Milliseconds") for phase in phases)
    assert metrics["InitImportEngine"] == [milliseconds["import-engine"]]
    assert metrics["InitModel"] == [milliseconds["model"]]
