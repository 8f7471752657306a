"""A server with workers whose bundle is in S3, real processes: a replaced worker, and what is left on the disk."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from export.publishing.store import Store
from tests.function.s3.asking import fetched, left
from tests.function.server.running import address_of, started
from tests.function.server.test_workers import eventually, workers_of
from tests.stand_ins.faults import Exchange, Proxy, refuse
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
            assert server.stdout is not None
            threading.Thread(target=server.stdout.read, daemon=True).start()  # so that the pipe is never full
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


def ask(address: str, path: str, seconds: float = 30) -> tuple[str, bytes]:
    """Return the version that answers, and its answer, on a connection of its own."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=seconds)
    with closing(connection):
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.headers["x-bundle"], reply.read()


def versions_of(address: str, number: int = 24) -> set[str]:
    """Return the versions that answer; the kernel spreads connections over the workers."""
    return {ask(address, "/health")[0] for _ in range(number)}


def infos_of(address: str, number: int = 24) -> list[dict[str, object]]:
    """Return what /info says of the bundle, of all workers."""
    return [json.loads(ask(address, "/info")[1])["bundle"] for _ in range(number)]


def serves(address: str, version: str) -> bool:
    return versions_of(address) == {version[:12]}


def kill_and_wait(server: Server, workers: list[int]) -> None:
    """Kill workers, and wait until others are there in their place."""
    before = workers_of(server)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: len(set(workers_of(server)) - set(before)) == len(workers))


def kill_all_and_remove(server: Server, folder: Path) -> None:
    """Kill all workers and remove a bundle, as another server that starts does when no process uses it."""
    workers = workers_of(server)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    shutil.rmtree(folder)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def test_replaced_workers_serve_what_the_others_serve_although_s3_does_not_answer(
    switched: Switched, proxy: Proxy
) -> None:
    server, address, version = switched()
    proxy.may_pass.clear()
    for killed in (1, 2):
        kill_and_wait(server, workers_of(server)[:killed])
        assert serves(address, version)
        assert {info["version"] for info in infos_of(address)} == {version}
    proxy.may_pass.set()


def test_a_worker_that_is_replaced_after_a_rollback_serves_the_older_version(
    start_server: StartServer, publish: Publish, store: Store, bundles: list[Path], proxy: Proxy
) -> None:
    older, newer = publish(bundles[1]), publish(bundles[2])
    server, address = start_server()
    store.switch(older, store.pointer())
    assert eventually(lambda: serves(address, older))
    store.switch(newer, store.pointer())
    assert eventually(lambda: serves(address, newer))
    store.switch(older, store.pointer())
    assert eventually(lambda: serves(address, older))
    proxy.fail("", refuse(403, "AccessDenied"))
    kill_and_wait(server, workers_of(server)[:1])
    assert serves(address, older)
    # the new worker asks S3 at once, and all of them say that it refuses
    assert eventually(lambda: all("403 AccessDenied" in str(info["error"]) for info in infos_of(address)))


def test_workers_whose_files_are_gone_wait_for_s3_and_serve_what_the_pointer_names(
    switched: Switched, environment: dict[str, str], proxy: Proxy
) -> None:
    server, address, version = switched()
    proxy.fail("", refuse(403, "AccessDenied"))
    folder = fetched(environment)
    kill_all_and_remove(server, folder / version)
    asked = len(proxy.asked)
    assert eventually(lambda: len(proxy.asked) >= asked + 2)  # the new workers end, and others take their place
    with pytest.raises(TimeoutError):
        ask(address, "/health", 0.3)
    proxy.faults.clear()
    assert eventually(lambda: serves(address, version))
    # a worker that waits for S3 before it serves anything ends at once
    proxy.may_pass.clear()
    asked = len(proxy.asked)
    kill_all_and_remove(server, folder / version)
    assert eventually(lambda: len(proxy.asked) >= asked + 2)
    server.terminate()
    assert server.wait(10) == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_stops_leaves_nothing(
    switched: Switched, environment: dict[str, str], stop: signal.Signals
) -> None:
    server, address, version = switched()
    if stop == signal.SIGTERM:
        kill_and_wait(server, workers_of(server)[:1])
        assert serves(address, version)
    assert version in left(environment)
    server.send_signal(stop)
    assert server.wait(30) == 0
    assert list(fetched(environment).iterdir()) == []


def test_a_server_without_workers_that_stops_in_the_middle_of_a_poll_leaves_nothing(
    switched: Switched, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    server, _, _ = switched(1)
    is_asked, may_end = threading.Event(), threading.Event()

    def wait(exchange: Exchange) -> None:
        is_asked.set()
        may_end.wait(30)

    proxy.fail("index.safetensors", wait)
    publish(bundles[2])
    assert is_asked.wait(30)
    server.terminate()
    assert server.wait(10) == 0  # S3 has 20 seconds to answer, four times
    may_end.set()
    assert list(fetched(environment).iterdir()) == []
