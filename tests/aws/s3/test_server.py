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
from tests.server.running import address_of, drain, eventually, started
from tests.server.test_workers import workers_of
from tests.stand_ins.faults import Exchange, Proxy
from tests.stand_ins.fixtures import Publish

Server = subprocess.Popen[str]
StartServer = Callable[..., tuple[Server, str]]
Switched = Callable[..., tuple[Server, str, str]]


@pytest.fixture
def start_server(url: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[StartServer]:
    """Return what starts a server from S3, which polls each second; it returns the process and its address."""
    for name, value in (environment | {"BUNDLE_POLL_SECONDS": "1"}).items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:

        def start(workers: int = 2) -> tuple[Server, str]:
            server = stack.enter_context(started(url, "--workers", str(workers)))
            address = address_of(server)
            drain(server)
            return server, address

        yield start


@pytest.fixture
def switched(start_server: StartServer, publish: Publish, bundles: list[Path]) -> Switched:
    """Return what starts a server and publishes a newer version; it returns them and the address when it is served."""

    def start(workers: int = 2) -> tuple[Server, str, str]:
        publish(bundles[0])
        server, address = start_server(workers)
        version = publish(bundles[1])
        assert eventually(lambda: serves(address, version))
        return server, address, version

    return start


def ask(address: str, path: str, seconds: float = 60) -> tuple[str, bytes]:
    """Return the version that answers, and its answer, on a connection of its own."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=seconds)
    with closing(connection):
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.headers["x-bundle"], reply.read()


def versions_of(address: str, number: int = 24) -> set[str]:
    """Return the versions that answer; the kernel spreads connections over the workers."""
    return {ask(address, "/health")[0] for _ in range(number)}


def serves(address: str, version: str) -> bool:
    return versions_of(address) == {version[:12]}


def kill_and_wait(server: Server, worker: int) -> None:
    """Kill a worker, and wait until another one is there in its place."""
    before = workers_of(server)
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: len(set(workers_of(server)) - set(before)) == 1)


def test_replaced_workers_serve_on_and_a_stop_leaves_nothing(switched: Switched, environment: dict[str, str]) -> None:
    server, address, version = switched()
    for worker in workers_of(server):  # granian ends a server whose replaced worker dies within seconds
        kill_and_wait(server, worker)
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
