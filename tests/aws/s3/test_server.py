"""A server with workers whose bundle is in S3, real processes: a replaced worker, and what is left on the disk."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.aws.s3.asking import fetched, left
from tests.project import needs_linux
from tests.server.running import address_of, drain, eventually, started
from tests.server.test_workers import workers_of
from tests.stand_ins.faults import Exchange, Proxy
from tests.stand_ins.fixtures import Publish

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
    return {version_at(address) for _ in range(24)} == {version[:12]}


def version_at(address: str) -> str | None:
    """Return the version that answers a request on a connection of its own."""
    with closing(HTTPConnection(address.removeprefix("http://"), timeout=60)) as connection:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        reply.read()
        return reply.headers["x-bundle"]


@needs_linux("fork")
def test_a_replaced_worker_serves_on_and_a_stop_leaves_nothing(switched: Switched, environment: dict[str, str]) -> None:
    server, address, version = switched()
    before = workers_of(server)
    os.kill(before[0], signal.SIGKILL)
    assert eventually(lambda: len(set(workers_of(server)) - set(before)) == 1)
    assert eventually(lambda: serves(address, version))
    assert version in left(environment)
    server.terminate()
    assert server.wait(60) == 0
    assert list(fetched(environment).iterdir()) == []


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
