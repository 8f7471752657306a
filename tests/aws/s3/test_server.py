"""A server with workers whose bundle is in S3, real processes: a replaced worker, and what is left on the disk."""

import json
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from semsearch.app.reloading.s3 import BundleReloader
from semsearch.app.settings import Settings
from semsearch.publishing.store import Store
from semsearch.server import asgi
from tests.aws.s3.asking import fetched, left
from tests.aws.s3.test_removed import GOOSE, QUERY
from tests.project import needs_linux
from tests.server.running import WAIT, address_of, drain, eventually, metrics_of, started
from tests.server.test_workers import workers_of
from tests.stand_ins.faults import Exchange, Proxy, refuse
from tests.stand_ins.fixtures import Publish
from tests.world import InProcess

Switched = Callable[..., tuple[subprocess.Popen[str], str, str]]


@pytest.fixture
def switched(
    url: str, environment: dict[str, str], publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Switched]:
    """Return what starts a server from S3, which polls each second, and publishes a newer version.

    It returns the server, its address and that version when all workers serve it.
    """
    for name, value in (environment | {"BUNDLE_POLL_SECONDS": "1"}).items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:

        def start(workers: int = 2) -> tuple[subprocess.Popen[str], str, str]:
            publish(bundles[0])
            server = stack.enter_context(started(url, "--workers", str(workers)))
            address = address_of(server)
            drain(server)
            version = publish(bundles[1])
            assert eventually(lambda: serves(address, version))
            return server, address, version

        yield start


def serves(address: str, version: str) -> bool:
    """Return whether all workers serve a version: the kernel spreads connections over them."""
    return {answer.version for answer in answers(address)} == {version[:12]}


class Answer(NamedTuple):
    """An answer to a search for the goose."""

    status: int
    version: str | None
    has_goose: bool


def answers(address: str) -> set[Answer]:
    """Return the answers to some searches, each on a connection of its own."""
    found = set()
    for _ in range(24):
        with closing(HTTPConnection(address.removeprefix("http://"), timeout=60)) as connection:
            connection.request("POST", "/similar", json.dumps(QUERY), {"content-type": "application/json"})
            reply = connection.getresponse()
            found.add(Answer(reply.status, reply.headers["x-bundle"], f'"{GOOSE}"'.encode() in reply.read()))
    return found


@needs_linux("fork")
def test_replaced_workers_serve_what_was_served_while_s3_is_away_and_a_stop_leaves_nothing(
    switched: Switched, store: Store, proxy: Proxy, environment: dict[str, str]
) -> None:
    server, address, version = switched()
    store.remove([GOOSE])
    expected = {Answer(200, version[:12], False)}
    assert eventually(lambda: answers(address) == expected)
    proxy.fail("", refuse(503, "SlowDown"))
    before = workers_of(server)
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    assert answers(address) == expected  # the connections wait for the new workers
    assert not set(workers_of(server)) & set(before)
    assert version in left(environment)
    server.terminate()
    assert server.wait(60) == 0
    assert list(fetched(environment).iterdir()) == []


def test_a_replaced_worker_whose_files_are_gone_answers_503_until_s3_is_back(
    switched: Switched, proxy: Proxy, environment: dict[str, str]
) -> None:
    server, address, version = switched(1)
    proxy.fail("", refuse(503, "SlowDown"))
    shutil.rmtree(fetched(environment))
    (worker,) = workers_of(server)
    os.kill(worker, signal.SIGKILL)
    assert answers(address) == {Answer(503, "", False)}
    with httpx.Client(base_url=address, trust_env=False, timeout=WAIT) as client:
        assert client.get("/health").status_code == 503
        assert eventually(lambda: "503 SlowDown" in str(client.get("/info").json()["bundle"]["error"]))
        assert {sample[0] for sample in metrics_of(address)} >= {"bundle_failures_total", "requests_total"}
        assert "bundle_workers" not in {sample[0] for sample in metrics_of(address)}
        proxy.faults.clear()
        assert eventually(lambda: client.get("/health").status_code == 200)
    assert serves(address, version)


@pytest.mark.slow  # the test above stops one between two polls
def test_a_server_without_workers_that_stops_in_the_middle_of_a_poll_leaves_nothing(
    switched: Switched, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    server, _, _ = switched(1)
    is_asked, may_end = threading.Event(), threading.Event()

    def wait(exchange: Exchange) -> None:
        is_asked.set()
        may_end.wait(120)

    proxy.fail("index.safetensors", wait)
    publish(bundles[2])
    assert is_asked.wait(60)
    server.terminate()
    assert server.wait(60) == 0  # S3 has 20 seconds to answer, four times
    may_end.set()
    assert list(fetched(environment).iterdir()) == []


def test_the_app_of_a_server_logs_the_phases_of_its_start_and_no_request_polls(
    url: str,
    environment: dict[str, str],
    publish: Publish,
    bundles: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    polls: list[BundleReloader] = []
    monkeypatch.setattr(BundleReloader, "poll", polls.append)
    monkeypatch.setattr(asgi, "make_logger", lambda settings: logging.getLogger("tests"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    publish(bundles[0])
    with caplog.at_level(logging.INFO):
        app = asgi.make_app(Settings(bundle_url=url, bundle_poll_seconds=0), 1, 10**6)
        with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
            assert client.get("/health").status_code == 200
    for thread in threading.enumerate():
        if thread.name == "poll":
            thread.join(WAIT)
    assert polls == []
    (begun,) = [record for record in caplog.records if record.getMessage() == "start"]
    assert list(begun.__dict__["milliseconds"]) == ["fetch", "load"]
