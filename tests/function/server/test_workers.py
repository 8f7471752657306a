"""Several workers, real processes: they share an address, count together, are replaced, and stop in order."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from function.server.cli import bind
from tests.function.server.running import address_of, started
from tests.function.server.test_metrics import counted
from tests.project import ROOT

WAIT = 30  # seconds, at most


@pytest.fixture
def server(bundle: Path) -> Iterator[subprocess.Popen[str]]:
    with started(bundle, "--workers", "2") as process:
        yield process
        for worker in workers_of(process):  # those of a main process that the test killed end by themselves
            os.kill(worker, signal.SIGKILL)


def workers_of(server: "subprocess.Popen[str]") -> list[int]:
    """Return the process ids of a server's workers."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    return [int(number) for number in children.read_text().split()] if children.exists() else []


def eventually(is_so: Callable[[], bool]) -> bool:
    """Return whether something becomes so in time."""
    end = time.monotonic() + WAIT
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def answers(address: str) -> bool:
    with httpx.Client(base_url=address, trust_env=False) as client:
        return client.get("/health").status_code == 200


def predicted(address: str) -> float:
    """Return how many requests to /predict all workers have counted."""
    return counted(httpx.get(f"{address}/metrics", trust_env=False).text).get(("requests_total", "/predict", "200"), 0)


def is_running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_workers_count_together(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    for _ in range(30):  # each on a connection of its own, which the kernel gives to one of the workers
        assert httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False).status_code == 200
    assert eventually(lambda: predicted(address) == 30)
    samples = counted(httpx.get(f"{address}/metrics", trust_env=False).text)
    assert samples["batch_texts_sum",] == 30
    assert samples["queued_tokens",] == 0


def test_connections_are_spread_over_the_workers(server: subprocess.Popen[str]) -> None:
    address = httpx.URL(address_of(server))
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection((address.host, address.port)))
        assert eventually(lambda: sum(map(sockets, workers_of(server))) >= 60)
        assert all(sockets(worker) >= 10 for worker in workers_of(server))


def sockets(process: int) -> int:
    """Return how many sockets a process has open."""
    files = Path(f"/proc/{process}/fd").iterdir()
    return sum(str(file.readlink()).startswith("socket:") for file in files)


def test_a_worker_that_dies_is_replaced_and_its_counts_stay(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    former = set(workers_of(server))
    assert len(former) == 2
    assert httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False).status_code == 200
    assert eventually(lambda: predicted(address) == 1)  # a request is counted after its reply
    for worker in former:
        os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: len(set(workers_of(server)) - former) == 2)
    assert answers(address)  # the sockets stayed open, so that no connection was refused meanwhile
    assert predicted(address) == 1


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_of_them_without_a_trace(server: subprocess.Popen[str], stop: signal.Signals) -> None:
    address_of(server)
    workers = workers_of(server)
    server.send_signal(stop)
    output, _ = server.communicate(timeout=WAIT)
    assert server.returncode == 0
    assert "Traceback" not in output
    assert not any(map(is_running, workers))


def test_workers_stop_when_the_main_process_is_killed(server: subprocess.Popen[str]) -> None:
    address_of(server)
    workers = workers_of(server)
    server.kill()
    assert eventually(lambda: not any(map(is_running, workers)))


def test_a_caller_that_hangs_up_is_dropped_and_counted(bundle: Path) -> None:
    with started(bundle) as server:
        address = address_of(server)
        texts = [
            "an angry goose sold forty apples at the market"
        ] * 2_000  # longer than callers.PATIENCE, on any machine
        large = {"content": json.dumps({"text": texts}), "headers": {"content-type": "application/json"}}

        def is_counted() -> bool:
            with httpx.Client(base_url=address, trust_env=False) as client:
                return counted(client.get("/metrics").text)["callers_left_total",] >= 1

        def hang_up() -> bool:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/predict", **large, timeout=httpx.Timeout(WAIT, read=0.0001), trust_env=False)  # type: ignore[arg-type]
            return is_counted()

        assert eventually(hang_up)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_under_load_finishes_what_was_accepted_and_ends_with_0(bundle: Path, workers: str) -> None:
    with started(bundle, "--workers", workers) as server:
        address = address_of(server)
        threading.Thread(target=server.stdout.read, daemon=True).start()  # type: ignore[union-attr]
        statuses: list[int] = []
        closed: list[bool] = []

        def ask_until_told_to_leave() -> None:
            with httpx.Client(base_url=address, trust_env=False, timeout=WAIT) as client:
                while True:
                    reply = client.post("/similar", json={"text": "an angry goose"})
                    statuses.append(reply.status_code)
                    if reply.headers.get("connection") == "close":
                        closed.append(True)
                        return

        callers = [threading.Thread(target=ask_until_told_to_leave) for _ in range(12)]
        for caller in callers:
            caller.start()
        assert eventually(lambda: len(statuses) > 100)
        server.send_signal(signal.SIGTERM)
        for caller in callers:
            caller.join(WAIT)
        assert server.wait(WAIT) == 0
        assert set(statuses) == {200}
        assert len(closed) == len(callers)  # each was told, and none lost a reply


def test_requests_on_connections_that_wait_to_be_accepted_are_answered_when_it_stops(
    server: "subprocess.Popen[str]",
) -> None:
    address = httpx.URL(address_of(server))
    assert address.port is not None
    request = b"POST /predict HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n"
    with ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection((address.host, address.port), 30)) for _ in range(60)]
        for caller in callers:
            caller.sendall(request + b'{"text": "goose"}')
        server.send_signal(signal.SIGTERM)
        replies = [caller.recv(100) for caller in callers]
    assert [reply[:15] for reply in replies] == [b"HTTP/1.1 200 OK"] * 60
    assert server.wait(timeout=WAIT) == 0


CLOSING = b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"


def closed_by_the_server(address: httpx.URL) -> None:
    """Ask on connections that the server closes first, so that the system keeps their ports for a minute."""
    assert address.port is not None
    for _ in range(20):
        with socket.create_connection((address.host, address.port), 30) as caller:
            caller.sendall(CLOSING)
            while caller.recv(1_000):
                pass


def test_a_server_that_was_stopped_can_start_again_at_once(bundle: Path) -> None:
    with started(bundle, "--workers", "2") as server:
        address = httpx.URL(address_of(server))
        closed_by_the_server(address)
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT) == 0
    with started(bundle, "--workers", "2", "--port", str(address.port)) as server:
        assert httpx.URL(address_of(server)) == address
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT) == 0


def test_a_server_can_start_soon_after_the_main_process_was_killed_under_load(
    server: subprocess.Popen[str], bundle: Path
) -> None:
    address = httpx.URL(address_of(server))
    assert address.port is not None
    closed_by_the_server(address)
    workers = workers_of(server)
    with ExitStack() as stack:
        for _ in range(40):  # requests that are not whole keep their workers from ending for many seconds
            caller = stack.enter_context(socket.create_connection((address.host, address.port), 30))
            caller.sendall(b"POST /similar HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n")
        assert eventually(lambda: sum(map(sockets, workers)) >= 40)
        server.kill()
        assert eventually(lambda: is_free(address))
        assert any(map(is_running, workers))  # they still wait for the callers
        with started(bundle, "--workers", "2", "--port", str(address.port)) as other:
            assert httpx.URL(address_of(other)) == address
            assert answers(str(address))
            other.send_signal(signal.SIGTERM)
            assert other.wait(WAIT) == 0
    assert eventually(lambda: not any(map(is_running, workers)))


def is_free(address: httpx.URL) -> bool:
    """Return whether a server can listen at an address."""
    assert address.port is not None
    try:
        listeners = bind(address.host, address.port, 2)
    except OSError:
        return False
    for listener in listeners:
        listener.close()
    return True


def test_two_servers_do_not_share_a_port_although_neither_listens_yet() -> None:
    with ExitStack() as stack:
        (first, _) = (stack.enter_context(listener) for listener in bind("127.0.0.1", 0, 2))
        for count in (1, 2):
            with pytest.raises(OSError, match="Address already in use"):
                bind("127.0.0.1", first.getsockname()[1], count)


def test_a_worker_that_was_stopped_is_replaced_and_no_new_caller_is_left_waiting(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    stopped, _ = workers_of(server)
    os.kill(stopped, signal.SIGSTOP)
    statuses = []

    def ask() -> None:
        statuses.append(httpx.get(f"{address}/health", trust_env=False, timeout=WAIT).status_code)

    callers = [threading.Thread(target=ask) for _ in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert statuses == [200] * 20
    assert stopped not in workers_of(server)
    assert len(workers_of(server)) == 2


def test_a_server_with_a_stopped_worker_ends_when_told_to(server: subprocess.Popen[str]) -> None:
    address_of(server)
    workers = workers_of(server)
    os.kill(workers[0], signal.SIGSTOP)
    server.send_signal(signal.SIGTERM)
    assert server.wait(25) == 0
    assert not any(map(is_running, workers))


BUSY = """
import os, socket, sys, time
from function.server import workers
workers.SECONDS_BETWEEN_CHECKS, workers.CHECKS_IF_RUNNING, workers.SECONDS_TO_STOP = 0.05, 10, 1

def write(line):
    os.write(1, line + b"\\n")  # one system call, so that lines of two processes do not mix

def serve(listener, is_first, is_alive, beat):
    write(b"worker True" if is_first else b"worker False")
    if is_first:
        time.sleep(600)  # its event loop is blocked
    while True:
        beat()
        time.sleep(0.01)

listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
workers.run_workers(listeners, serve, lambda process: write(b"ended"))
"""


def test_a_worker_whose_event_loop_is_blocked_is_replaced_and_another_is_not() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as main:
        assert main.stdout is not None
        timer = threading.Timer(WAIT, main.kill)
        timer.start()
        lines = [main.stdout.readline().strip() for _ in range(6)]
        timer.cancel()
        main.send_signal(signal.SIGTERM)  # these workers do not end by themselves
        _, errors = main.communicate(timeout=WAIT)
    assert sorted(lines[:2]) == ["worker False", "worker True"]
    assert lines[2:] == ["ended", "worker True"] * 2
    assert main.returncode == 0
    assert ": no sign of life in 10 checks, expected one each second; it is killed" in errors
