"""Several workers, real processes: they count together, are replaced, and stop in order."""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.server.running import WAIT, address_of, drain, eventually, metrics_of, started

GOOSE = b'{"text": "goose"}'
REQUEST = (
    b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    % (
        len(GOOSE),
        GOOSE,
    )
)


@pytest.fixture
def server(bundle: Path) -> Iterator[subprocess.Popen[str]]:
    with started(bundle, "--workers", "2") as process:
        yield process


def workers_of(server: "subprocess.Popen[str]") -> list[int]:
    """Return the process ids of a server's workers."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    return [int(number) for number in children.read_text().split()] if children.exists() else []


def predicted(address: str) -> float:
    """Return how many requests to /predict all workers have counted."""
    return metrics_of(address).get(("requests_total", "/predict", "200"), 0)


def is_running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_workers_that_die_are_replaced_their_counts_stay_and_no_connection_is_refused(
    server: subprocess.Popen[str],
) -> None:
    address = httpx.URL(address_of(server))
    printed = drain(server)
    former = set(workers_of(server))
    assert len(former) == 2
    assert (
        httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False, timeout=WAIT).status_code
        == 200
    )
    assert eventually(lambda: predicted(str(address)) == 1)  # a request is counted after its reply
    for worker in former:
        os.kill(worker, signal.SIGKILL)
    with socket.create_connection((address.host, address.port), WAIT) as caller:  # before there is a new worker
        caller.sendall(REQUEST)
        assert caller.recv(15) == b"HTTP/1.1 200 OK"
    assert eventually(lambda: len(set(workers_of(server)) - former) == 2)
    assert eventually(lambda: predicted(str(address)) == 2)
    assert eventually(lambda: "".join(printed).count("was ended by the signal SIGKILL") == 2)


def test_counts_go_on_when_the_temporary_folder_is_full(bundle: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with started(bundle, "--workers", "2", environment=environment) as server:
        address = address_of(server)
        drain(server)
        assert list(tmp_path.iterdir()) == []
        httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False, timeout=WAIT)
        assert eventually(lambda: predicted(address) == 1)


@pytest.mark.parametrize("sent", [b"", REQUEST, REQUEST[:30]], ids=["nothing", "a request", "half a head"])
def test_a_connection_that_sends_no_whole_head_in_time_is_closed(bundle: Path, sent: bytes) -> None:
    with started(bundle, "--idle-timeout", "1") as server:
        address = httpx.URL(address_of(server))
        drain(server)
        with socket.create_connection((address.host, address.port), WAIT) as caller:
            caller.sendall(sent)
            reply = b""
            while part := caller.recv(4096):
                reply += part
        assert reply.startswith(b"HTTP/1.1 200") == (sent == REQUEST)


def test_a_signal_stops_all_of_them_without_a_trace(server: subprocess.Popen[str]) -> None:
    address_of(server)
    workers = workers_of(server)
    server.send_signal(signal.SIGTERM)
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
        address = httpx.URL(address_of(server))
        drain(server)
        body = json.dumps({"text": ["an angry goose sold forty apples at the market"] * 2_000}).encode()

        def is_counted_after_hanging_up() -> bool:
            with socket.create_connection((address.host, address.port), WAIT) as caller:
                caller.sendall(REQUEST.replace(GOOSE, body).replace(b": %d" % len(GOOSE), b": %d" % len(body)))
            return metrics_of(str(address))["callers_left_total",] >= 1

        assert eventually(is_counted_after_hanging_up)


def test_sigterm_under_load_finishes_what_was_accepted_and_ends_with_0(bundle: Path) -> None:
    with started(bundle, "--workers", "2") as server:
        address = address_of(server)
        drain(server)
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
    with ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection((address.host, address.port), 30)) for _ in range(60)]
        for caller in callers:
            caller.sendall(REQUEST)
        server.send_signal(signal.SIGTERM)
        replies = [caller.recv(100) for caller in callers]
    assert [reply[:15] for reply in replies] == [b"HTTP/1.1 200 OK"] * 60
    assert server.wait(timeout=WAIT) == 0
