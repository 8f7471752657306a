"""A start that the fetch of a large bundle would keep too long answers with the model first."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from export.index.indexer import write_manifest
from function.app import create_app
from function.engine import published
from function.engine.bundle import BundleError, read_manifest
from function.s3 import early_start
from function.s3.early_start import EarlyReloader
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess
from tests.function.s3.asking import NOWHERE, left
from tests.stand_ins.faults import Exchange, Proxy, refuse
from tests.stand_ins.fixtures import Publish

Early = tuple[EarlyReloader, httpx.Client]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_start, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(early_start, "SECONDS_BETWEEN_LOOKS", 0.001)


@pytest.fixture
def arrival(proxy: Proxy) -> Iterator[threading.Event]:
    """Let the index wait until this event is set."""
    event = threading.Event()

    def hold(exchange: Exchange) -> None:
        event.wait(20)
        exchange.answer(*exchange.ask())

    proxy.fail("index.safetensors", hold)
    yield event
    event.set()


@pytest.fixture
def start(url: str, environment: dict[str, str]) -> Iterator[Callable[..., Early]]:
    """Return what starts a function as the handler does, and waits some seconds for its files."""
    with ThreadPoolExecutor(1) as background:

        def started(seconds: float = 0.0) -> Early:
            reloader = EarlyReloader(url, NOWHERE, 60, environment, by_requests=True)
            fetching, opening = background.submit(reloader.fetch), background.submit(reloader.open_fetched)
            reloader.wait_for_files(fetching, published.START_SECONDS - seconds, "on-demand")
            bundle = reloader.serve_first(fetching, opening)
            cold_start = ColdStart(lambda phases: None)
            cold_start.end({})
            app = create_app(bundle, Settings(), logging.getLogger("tests"), cold_start, reloader=reloader)
            return reloader, httpx.Client(transport=InProcess(app), base_url="http://tests")

        yield started


def similar(client: httpx.Client) -> httpx.Response:
    return client.post("/similar", json={"text": "angry goose"})


def end_poll() -> None:
    """Wait until the poll that requests have started has ended."""
    for thread in threading.enumerate():
        if thread.name == "poll":
            thread.join(20)


def test_the_model_answers_before_the_index_has_arrived(
    start: Callable[..., Early], publish: Publish, bundle: Path, arrival: threading.Event
) -> None:
    version = publish(bundle)
    reloader, client = start()
    assert reloader.is_early
    assert client.get("/health").json() == {"status": "ok"}
    embedded = client.post("/predict", json={"text": "angry goose"})
    assert embedded.status_code == 200
    assert "x-bundle" not in embedded.headers
    info = client.get("/info").json()
    assert (info["index"]["rows"], info["bundle"]["version"]) == (200, "")

    arrival.set()
    end_poll()
    found = similar(client)
    assert (found.status_code, found.headers["x-bundle"]) == (200, version[:12])
    assert client.post("/predict", json={"text": "angry goose"}).json() == embedded.json()
    status = client.get("/info").json()["bundle"]
    assert (status["version"], status["switches"], status["failures"], status["error"]) == (version, 0, 0, None)


def test_what_needs_the_texts_is_answered_with_503_meanwhile(
    start: Callable[..., Early], publish: Publish, bundle: Path, arrival: threading.Event
) -> None:
    publish(bundle)
    _, client = start()
    for reply in (similar(client), client.get("/passages/story-001"), client.get("/documents/a.md")):
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert reply.json()["error"] == "corpus: its texts are still being fetched from S3; try again in 1 s"
    headers = {"accept": "application/json, text/event-stream"}
    calls = {"fetch": {"id": "story-001"}, "search": {"query": "goose"}}
    for name, arguments in calls.items():
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        result = client.post("/mcp", json=body, headers=headers).json()["result"]
        assert result["isError"]
        assert "are still being fetched" in result["content"][0]["text"]


def test_a_search_waits_for_the_index(
    start: Callable[..., Early],
    publish: Publish,
    bundle: Path,
    arrival: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(early_start, "WAIT_SECONDS", 20)
    publish(bundle)
    _, client = start()
    replies: Future[httpx.Response] = Future()
    thread = threading.Thread(target=lambda: replies.set_result(similar(client)))
    thread.start()
    assert not replies.done()
    arrival.set()
    assert replies.result(20).status_code == 200
    thread.join()


def test_the_model_is_fetched_first_and_a_start_whose_files_arrive_in_time_has_them_all(
    start: Callable[..., Early], publish: Publish, own_bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("function.s3.reloader.AT_ONCE_TO_START", 1)
    manifest = read_manifest(own_bundle)
    write_manifest(own_bundle, replace(manifest, files=dict(reversed(manifest.files.items()))))
    version = publish(own_bundle)
    reloader, client = start(20.0)
    assert not reloader.is_early
    assert similar(client).headers["x-bundle"] == version[:12]
    asked = [path.rpartition("/")[2] for path, _, _ in proxy.asked]
    assert set(asked[2:4]) == {"model.ort", "tokenizer.txt"}  # after the pointer and the manifest


def test_an_error_of_the_fetch_is_in_the_reply_and_it_is_tried_again(
    start: Callable[..., Early], publish: Publish, bundle: Path, proxy: Proxy, environment: dict[str, str]
) -> None:
    version = publish(bundle)
    event = threading.Event()

    def refuse_late(exchange: Exchange) -> None:
        event.wait(20)
        exchange.answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")

    proxy.fail("index.safetensors", refuse_late)
    _, client = start()
    event.set()
    similar(client)
    end_poll()
    reply = similar(client)
    assert reply.status_code == 503
    assert "could not be fetched from S3 (" in reply.json()["error"]
    assert "403 AccessDenied" in reply.json()["error"]
    assert client.post("/predict", json={"text": "goose"}).status_code == 200
    end_poll()
    proxy.faults.clear()
    similar(client)
    end_poll()
    assert similar(client).headers["x-bundle"] == version[:12]
    assert left(environment) == [version]


def test_a_start_without_the_model_waits_and_fails_as_ever(
    start: Callable[..., Early], publish: Publish, bundle: Path, proxy: Proxy
) -> None:
    publish(bundle)
    proxy.fail("model.ort", refuse(403, "AccessDenied"))
    with pytest.raises(BundleError, match="403 AccessDenied"):
        start()


HANDLER = """
import json, os, urllib.request
from function.engine import published
published.START_SECONDS = 0.0  # before function.s3.early_start reads it
import function.handler
def ask(method, path, body=None):
    event = {"version": "2.0", "routeKey": "", "rawPath": path, "rawQueryString": "",
             "headers": {"content-type": "application/json"}, "isBase64Encoded": False, "body": body,
             "requestContext": {"http": {"method": method, "path": path, "sourceIp": "127.0.0.1"}}}
    return function.handler.handler(event, None)["statusCode"]
early = function.handler.reloader.is_early
if early:
    urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL_S3"] + "/release")  # the index arrives now
statuses = [ask("GET", "/health"), ask("POST", "/predict", '{"text": "goose"}'),
            ask("POST", "/similar", '{"text": "goose"}')]
print(json.dumps([early, statuses]))
"""


@pytest.mark.parametrize("kind", ["on-demand", "provisioned-concurrency"])
def test_the_handler_starts_early_only_where_init_is_limited(
    in_a_new_process: Callable[..., Any],
    publish: Publish,
    bundle: Path,
    url: str,
    environment: dict[str, str],
    proxy: Proxy,
    arrival: threading.Event,
    kind: str,
) -> None:
    publish(bundle)

    def release(exchange: Exchange) -> None:
        arrival.set()
        exchange.answer(200, {}, b"")

    proxy.fail("/release", release)
    is_limited = kind == "on-demand"
    if not is_limited:
        threading.Timer(1.0, arrival.set).start()
    variables = environment | {"BUNDLE_DIR": url, "AWS_LAMBDA_INITIALIZATION_TYPE": kind}
    assert in_a_new_process(HANDLER, **variables) == [is_limited, [200, 200, 200]]
