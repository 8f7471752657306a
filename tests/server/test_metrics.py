"""GET /metrics, read by the library's own parser."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from semsearch.app.access import stored_keys
from semsearch.app.access.keys import StatedKeys
from semsearch.app.reloading.reloader import Status
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.app.shared_memory import SharedFailures
from semsearch.engine.bundle import MANIFEST
from semsearch.server import metrics
from semsearch.server.asgi import ServerApp, make_app
from semsearch.server.metrics import Metrics
from tests.app.mcp.test_messages import message
from tests.server.running import counted
from tests.world import InProcess


@pytest.fixture
def app(bundle: Path) -> ServerApp:
    return make_app(Settings(bundle_dir=bundle), 1, 10**6)


@pytest.fixture
def client(app: ServerApp) -> Iterator[httpx.Client]:
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
        yield client


def test_requests_phases_and_batches_are_counted(client: httpx.Client) -> None:
    assert client.post("/predict", json={"text": ["goose", "an angry goose"]}).status_code == 200
    assert client.post("/similar", json={"text": "goose"}).status_code == 200
    assert client.post("/similar", json={}).status_code == 422
    samples = counted(client.get("/metrics").text)
    assert samples["requests_total", "/predict", "200"] == 1
    assert samples["requests_total", "/similar", "200"] == samples["requests_total", "/similar", "422"] == 1
    assert samples["request_seconds_count", "/similar"] == 2
    for phase in (("embed", "/predict"), ("search", "/similar")):
        assert samples["phase_seconds_count", *phase] == 1
    assert samples["batch_texts_sum",] == 3
    assert samples["batch_tokens_sum",] == 3 + 5 + 3
    assert samples["queued_tokens",] == 0
    assert samples["request_seconds_sum", "/predict"] > 0


def test_paths_of_no_route_are_counted_together_and_so_are_those_with_a_name_in_them(client: httpx.Client) -> None:
    for path in ("/a", "/b", "/semantic/search", "/v1/models/one", "/v1/models/two"):
        client.get(path)
    samples = counted(client.get("/metrics").text)
    found = {key[1]: value for key, value in samples.items() if key[0] == "requests_total"}
    assert found == {"other": 3, "/v1/models/{name}": 2}


def test_the_bundle_of_each_worker_is_shown(app: ServerApp, client: httpx.Client, bundle: Path, tmp_path: Path) -> None:
    version = client.get("/info").json()["bundle"]["version"][:12]
    app.begin(0)
    samples = counted(client.get("/metrics").text)
    assert samples["bundle_workers", version] == 1
    assert samples["bundle_failures_total",] == 0
    assert 0 < samples["bundle_loaded_timestamp_seconds",] < time.time() + 1


def test_the_counts_of_all_workers_are_added_and_a_new_worker_has_neither_queue_nor_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "time", lambda: 100.0)
    app, updates = FastAPI(), SharedFailures()
    own = Metrics(2, updates)
    own.keys, own.filters = SharedFailures(), SimpleNamespace(reasons=lambda: ["one", "two"])  # type: ignore[assignment]
    app.get("/predict")(lambda: None)
    own.add_route(app)
    stopwatch: Any = SimpleNamespace(phases={"embed": 20.0}, total=lambda: 30.0)  # milliseconds
    for worker in (0, 1):
        own.begin(worker)
        for status in (200, 429):
            own.count_request("/predict", status, stopwatch)
        own.count_batch(2, 16)
        own.set_queued(5 + worker)
        own.set_connections(3 + worker)
        own.count_left()
        own.set_bundle(Status("", f"{worker}" * 20, loaded_at=10.0 + worker, looked_at=20.0 + worker, failures=1))
    updates.fail("")
    own.keys.fail("")
    client = httpx.Client(transport=InProcess(app), base_url="http://tests")
    samples = counted(client.get("/metrics").text)
    buckets = {key: value for key, value in samples.items() if key[0].endswith("_bucket")}
    assert (
        samples.items() - buckets.items()
        == {
            ("requests_total", "/predict", "200"): 2,
            ("requests_total", "/predict", "429"): 2,
            ("request_seconds_count", "/predict"): 2,
            ("request_seconds_sum", "/predict"): 0.06,
            ("phase_seconds_count", "embed", "/predict"): 4,
            ("phase_seconds_sum", "embed", "/predict"): 0.08,
            ("batch_texts_count",): 2,
            ("batch_texts_sum",): 4,
            ("batch_tokens_count",): 2,
            ("batch_tokens_sum",): 32,
            ("queued_tokens",): 11,
            ("connections",): 7,
            ("callers_left_total",): 2,
            ("keys_failures_total",): 1,
            ("keys_unusable",): 2,
            ("bundle_workers", "0" * 12): 1,
            ("bundle_workers", "1" * 12): 1,
            ("bundle_failures_total",): 2,
            ("index_failures_total",): 1,
            ("bundle_loaded_timestamp_seconds",): 10,
            ("bundle_seconds_since_look",): 80,
        }.items()
    )
    first = {  # the lowest bucket that a value is in
        name: next(key[1] for key in buckets if key[0] == f"{name}_bucket" and buckets[key])
        for name in ("request_seconds", "phase_seconds", "batch_texts", "batch_tokens")
    }
    assert first == {"request_seconds": "0.05", "phase_seconds": "0.025", "batch_texts": "2.0", "batch_tokens": "16.0"}
    own.begin(1)
    after = counted(client.get("/metrics").text)
    assert after == samples | {("queued_tokens",): 5, ("connections",): 3}


def test_values_above_all_buckets_are_counted() -> None:
    app, own = FastAPI(), Metrics()
    own.add_route(app)
    own.count_batch(1_000, 10_000)
    samples = counted(httpx.Client(transport=InProcess(app), base_url="http://tests").get("/metrics").text)
    assert samples["batch_texts_bucket", "+Inf"] == samples["batch_tokens_count",] == 1
    assert samples["batch_texts_bucket", "128.0"] == 0
    assert ("request_seconds_count", "other") not in samples


def test_failures_to_read_the_keys_that_aws_keeps_are_counted(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(StatedKeys):
        failures = SharedFailures()

    monkeypatch.setattr(stored_keys, "StoredKeys", Kept)
    key = ApiKey("a", hash_key("0123456789abcdef"), None)
    app = make_app(Settings(bundle_dir=bundle, api_keys=(key,), api_keys_arn="arn"), 1, 10**6)
    Kept.failures.fail("no answer")
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
        samples = counted(client.get("/metrics", headers={"authorization": "Bearer 0123456789abcdef"}).text)
    assert (samples["keys_failures_total",], samples["keys_unusable",]) == (1, 0)


def test_failed_polls_of_a_worker_that_died_still_count() -> None:
    app, own = FastAPI(), Metrics()
    own.add_route(app)
    client = httpx.Client(transport=InProcess(app), base_url="http://tests")
    for version, failures, total in (("one", 2, 2), ("one", 0, 2), ("", 3, 5)):  # "" while it can serve none
        if failures == 0:
            own.begin(0)  # the next worker with this number
        own.set_bundle(Status("", version, failures=failures))
        assert counted(client.get("/metrics").text)["bundle_failures_total",] == total


def test_the_seconds_since_a_worker_looked_for_a_bundle_are_shown(
    app: ServerApp, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.begin(0)
    assert app.reloader is not None
    looked_at = app.reloader.status.looked_at
    monkeypatch.setattr(metrics, "time", lambda: looked_at + 64)
    assert counted(client.get("/metrics").text)["bundle_seconds_since_look",] == 64


def test_replies_say_that_changes_wait_and_that_an_update_had_an_error(bundle: Path) -> None:
    updates = SharedFailures()
    app = make_app(Settings(bundle_dir=bundle), 1, 10**6, updates=updates)
    call = message("tools/call", {"name": "search", "arguments": {"query": "goose"}})
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:

        def said() -> tuple[str | None, str]:
            answer = client.post("/mcp", json=call).json()["result"]["content"][0]["text"]
            return client.post("/similar", json={"text": "goose"}).json().get("index"), json.loads(answer)["index"]

        made = said()[1]
        assert said() == (None, made)
        updates.waiting = 3
        assert said() == (f"{made}; files changed since: 3",) * 2
        updates.fail("secret.md: Permission denied")
        assert said() == (f"{made}; files changed since: 3; error of the last update: see GET /info",) * 2
        updates.waiting = 0
        updates.succeed()
        assert said() == (None, made)


def test_polls_and_updates_that_fail_are_counted_and_the_last_error_is_shown(bundle_copy: Path) -> None:
    updates = SharedFailures()
    app = make_app(Settings(bundle_dir=bundle_copy), 1, 10**6, updates=updates)
    updates.fail("notes: the process that makes its index was ended by the signal SIGKILL")
    (bundle_copy / MANIFEST).write_text("[]")
    assert app.reloader is not None
    for _ in range(2):  # files are opened when two looks have found the same
        app.reloader.poll()
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
        samples = counted(client.get("/metrics").text)
        shown = client.get("/info").json()["bundle"]
    assert samples["bundle_failures_total",] == samples["index_failures_total",] == 1
    assert shown["failures"] == shown["update_failures"] == 1
    assert "format_version" in shown["error"]
    assert shown["update_error"].endswith("SIGKILL")
