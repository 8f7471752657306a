"""Several workers, real processes: they count together, are replaced, and stop in order."""

import gc
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from granian.server.mp import MPServer

from semsearch.server import workers
from semsearch.server.asgi import STOPPING
from semsearch.server.connections import OPEN_FILES
from semsearch.server.workers import SECONDS_TO_LEAVE, SECONDS_TO_STOP, OneProcess, Workers, bind
from tests.project import needs_linux
from tests.server.running import WAIT, address_of, drain, eventually, metrics_of, started

GOOSE = b'{"text": "goose"}'
REQUEST = (
    b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    % (len(GOOSE), GOOSE)
)


@pytest.fixture
def server(bundle: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with started(bundle, "--workers", "2", environment=os.environ | {"TMPDIR": str(tmp_path)}) as process:
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


@needs_linux("fork")
def test_workers_that_die_are_replaced_their_counts_stay_no_connection_is_refused_and_all_end_with_the_main_process(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    address = httpx.URL(address_of(server))
    printed = drain(server)
    assert list(tmp_path.iterdir()) == []  # the counts need no temporary folder, which can be full
    former = set(workers_of(server))
    assert len(former) == 2
    first = httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False, timeout=WAIT)
    assert first.status_code == 200
    assert eventually(lambda: predicted(str(address)) == 1)  # a request is counted after its reply
    for worker in former:
        os.kill(worker, signal.SIGKILL)
    with socket.create_connection((address.host, address.port), WAIT) as caller:  # before there is a new worker
        caller.sendall(REQUEST)
        assert caller.recv(15) == b"HTTP/1.1 200 OK"
    assert eventually(lambda: len(set(workers_of(server)) - former) == 2)
    assert eventually(lambda: predicted(str(address)) == 2)
    assert eventually(lambda: "".join(printed).count("was ended by the signal SIGKILL") == 2)
    running = workers_of(server)
    assert eventually(lambda: [os.getpgid(worker) for worker in running] == running)  # Ctrl-C does not reach them
    server.kill()
    have_ended = eventually(lambda: not any(map(is_running, running)))
    for worker in filter(is_running, running):
        os.kill(worker, signal.SIGKILL)  # it would keep the pipe open, and `started` waits for its end
    assert have_ended


@needs_linux("fork")
def test_sighup_reads_the_keys_again_and_a_new_worker_accepts_no_removed_one(bundle: Path, tmp_path: Path) -> None:
    old, new, keys = "old-key-0123456789", "new-key-0123456789", tmp_path / "keys"
    keys.write_text(old)
    with started(bundle, environment=os.environ | {"API_KEYS_FILE": str(keys)}) as server:
        address = address_of(server)
        drain(server)

        def statuses() -> list[int]:
            return [
                httpx.get(
                    f"{address}/info", headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=WAIT
                ).status_code
                for key in (old, new)
            ]

        assert statuses() == [200, 401]
        with closing(HTTPConnection(address.removeprefix("http://"), timeout=WAIT)) as caller:
            caller.request("POST", "/similar", b" " * 30_000_000)  # it reads the reply only when all is sent
            assert caller.getresponse().status == 401
        keys.write_text(new)
        server.send_signal(signal.SIGHUP)
        assert eventually(lambda: statuses() == [401, 200])
        (worker,) = workers_of(server)
        os.kill(worker, signal.SIGKILL)
        assert statuses() == [401, 200]
        assert workers_of(server) != [worker]
        server.terminate()
        assert server.wait(WAIT) == 0


def test_a_connection_that_sends_no_whole_head_in_time_is_closed(bundle: Path) -> None:
    with started(bundle, "--idle-timeout", "1") as server, ExitStack() as stack:
        address = httpx.URL(address_of(server))
        drain(server)
        replies = []
        for sent in (b"", REQUEST, REQUEST[:30]):
            caller = stack.enter_context(socket.create_connection((address.host, address.port), WAIT))
            caller.sendall(sent)
            replies.append(stack.enter_context(caller.makefile("rb")))
        assert [reply.read()[:12] for reply in replies] == [b"", b"HTTP/1.1 200", b""]


@pytest.mark.slow  # tests/server/test_connections.py covers all but granian's part
def test_silent_callers_do_not_keep_others_out(bundle: Path) -> None:
    with started(bundle, "--max-connections", "3") as server, ExitStack() as stack:
        address = httpx.URL(address_of(server))
        printed = drain(server)
        silent = [stack.enter_context(socket.create_connection((address.host, address.port), WAIT)) for _ in range(7)]
        assert httpx.get(f"{address}/health", trust_env=False, timeout=WAIT).status_code == 200  # it waits in line
        assert silent[0].recv(1) == b""
        assert "all connections are taken" in "".join(printed)
        assert 0 < metrics_of(str(address))["connections",] <= 3


class Clock:
    """Time that passes only while something sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Worker:
    """A worker that ends after some looks, or when it is killed. granian watches it in a thread."""

    idx, interrupt_by_parent = 0, False

    def __init__(self, looks: float, seen: list[object]) -> None:
        self.looks, self.seen, self.inner = looks, seen, SimpleNamespace(pid=17)

    def is_alive(self) -> bool:
        self.looks -= 1
        return self.looks > 0

    def terminate(self) -> None:
        self.seen.append("terminate")

    def join(self, timeout: float | None = None) -> None:
        self.seen.append(("join", timeout))

    def kill(self) -> None:
        self.seen.append("kill")
        self.looks = 0


@pytest.fixture
def still() -> Any:
    """A server with one listening socket that has not started."""
    app: Any = SimpleNamespace(watch_connections=lambda port, most: None)
    listener: Any = SimpleNamespace(getsockname=lambda: ("::1", 8000, 0, 0))
    server: Any = Workers(app, [listener], 1, 1)
    server.pid = os.getpid()
    return server


def watch_kill(monkeypatch: pytest.MonkeyPatch, server: Any, seen: list[object]) -> None:
    """Note the signals that the only worker of a server gets. It has just died."""

    def kill(pid: int, number: int) -> None:
        (worker,) = server.wrks
        seen.append((pid, number, worker.interrupt_by_parent))
        raise ProcessLookupError

    monkeypatch.setattr(workers, "os", SimpleNamespace(kill=kill))


@pytest.mark.parametrize(("looks", "end"), [(5, SECONDS_TO_LEAVE), (math.inf, SECONDS_TO_LEAVE + SECONDS_TO_STOP)])
def test_workers_are_told_to_stop_and_killed_only_if_they_have_not_ended_in_time(
    still: Any, monkeypatch: pytest.MonkeyPatch, looks: float, end: float
) -> None:
    clock, seen = Clock(), list[object]()
    monkeypatch.setattr(workers, "time", clock)
    worker: Any = Worker(looks, seen)
    still.wrks = [worker]
    watch_kill(monkeypatch, still, seen)
    still._stop_workers()
    killed = ["kill", ("join", None)] if looks == math.inf else []
    assert seen == [(17, STOPPING, True), "terminate", "terminate", ("join", 1), *killed]
    assert clock.now == pytest.approx(end, abs=0.1)


def test_sighup_reaches_each_worker_and_a_stop_that_comes_meanwhile_is_heeded(
    still: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    worker: Any = Worker(math.inf, seen)
    still.wrks = [worker]
    watch_kill(monkeypatch, still, seen)
    for interrupt, children in ((False, []), (True, []), (False, [0])):
        still.interrupt_signal, still.interrupt_children, still.reload_signal = interrupt, children, True
        still.main_loop_interrupt.set()
        still._reload(None, None)
        assert not still.reload_signal
        assert still.main_loop_interrupt.is_set() == (interrupt or bool(children))
    assert seen == [(17, signal.SIGHUP, False)] * 3


class Listener:
    """A listening socket that notes when it is closed."""

    def __init__(self, number: int, seen: list[object]) -> None:
        self.number, self.seen = number, seen

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 8000

    def close(self) -> None:
        self.seen.append(f"close {self.number}")

    def detach(self) -> None:
        self.seen.append(f"detach {self.number}")


@pytest.mark.parametrize(
    ("server", "number", "begun", "dropped"),
    [
        (Workers, 1, [(0, 0), "watch the main process", "close 0", "close 2", 1], ["close 0", "close 1", "close 2"]),
        (OneProcess, 0, [0], ["detach 0"]),
    ],
)
def test_a_worker_keeps_its_own_socket_and_the_main_process_none_when_it_stops(
    monkeypatch: pytest.MonkeyPatch, server: type[Workers], number: int, begun: list[object], dropped: list[object]
) -> None:
    seen: list[object] = []

    def thread(target: Callable[[], None], daemon: bool) -> SimpleNamespace:
        assert daemon  # it does not keep the process
        assert target == made._end_with_main_process
        return SimpleNamespace(start=lambda: seen.append("watch the main process"))

    monkeypatch.setattr(workers, "os", SimpleNamespace(setpgid=lambda *numbers: seen.append(numbers)))
    monkeypatch.setattr(workers, "threading", SimpleNamespace(Thread=thread))
    app: Any = SimpleNamespace(watch_connections=lambda port, most: None, begin=seen.append)
    listeners: Any = [Listener(each, seen) for each in range(3)]
    made = server(app, listeners, 1, 1)
    assert made._begin(number) is app
    assert seen == begun
    seen.clear()
    made._drop_shared_socket()
    assert seen == dropped


def test_a_worker_ends_with_the_main_process(still: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, parents, seen = Clock(), [still.pid, still.pid, 1], list[object]()

    def kill(*signalled: int) -> None:
        seen.extend(signalled)
        raise SystemExit

    monkeypatch.setattr(workers, "time", clock)
    monkeypatch.setattr(workers, "os", SimpleNamespace(getppid=lambda: parents.pop(0), getpid=lambda: 17, kill=kill))
    with pytest.raises(SystemExit):
        still._end_with_main_process()
    assert (seen, clock.now) == ([17, signal.SIGTERM], 3.0)


def test_the_end_of_a_worker_that_is_replaced_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    process: Any = SimpleNamespace(pid=17)  # its exit code is known when it was waited for
    process.join = lambda: setattr(process, "exitcode", -9)
    workers._report_end(0, process)
    assert capsys.readouterr().err == "worker-1 (process 17) was ended by the signal SIGKILL\n"


def test_a_worker_that_was_just_forked_ends_at_once_and_the_main_process_stops(
    still: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    still.signal_handler_interrupt()
    assert still.interrupt_signal
    still.pid += 1
    with pytest.raises(SystemExit) as ended:
        still.signal_handler_interrupt()
    assert ended.value.code == 0


def test_the_address_is_printed_when_the_workers_have_started(
    still: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MPServer, "startup", lambda *arguments: print("started", file=sys.stderr))
    still.startup(None, None)
    assert capsys.readouterr().err == "started\nrunning on http://[::1]:8000 (Ctrl-C stops it)\n"


def test_one_worker_has_a_socket_whose_port_no_other_server_shares() -> None:
    (only,) = bind("127.0.0.1", 0, 1)
    with only:
        assert only.getsockname()[1] > 0
        assert only.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        assert not only.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)


def test_the_settings_of_granian() -> None:
    watched: list[tuple[int, int]] = []
    app: Any = SimpleNamespace(watch_connections=lambda port, most: watched.append((port, most)))
    listeners: Any = [Listener(each, []) for each in range(3)]
    server: Any = Workers(app, listeners, 7, 2)
    assert (server.workers, server.backpressure, server.websockets) == (3, 7, False)
    assert server.respawn_failed_workers
    assert server.http1_settings.header_read_timeout == 2_000  # milliseconds
    assert watched == [(8000, 7)]


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="needs /dev/fd, which lists open files")
def test_a_port_that_is_taken_leaves_no_socket_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        gc.collect()  # files of other tests are closed now, and not between the two counts
        open_files = len(list(OPEN_FILES.iterdir()))
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port, 1)
        assert len(list(OPEN_FILES.iterdir())) == open_files


@needs_linux("SO_REUSEPORT, by which several sockets share a port")
def test_sockets_of_one_port_listen_when_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[tuple[int, int]] = []
    app: Any = SimpleNamespace(watch_connections=lambda port, most: watched.append((port, most)))
    former = signal.getsignal(STOPPING)
    with ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in bind("127.0.0.1", 0, 3)]
        (address,) = {each.getsockname() for each in listeners}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, WAIT)
        served: list[dict[str, Any]] = []
        monkeypatch.setattr(Workers, "serve", lambda _, **options: served.append(options))
        try:
            Workers(app, listeners, 7, 1).run()
            assert signal.getsignal(STOPPING) == signal.SIG_IGN
        finally:
            signal.signal(STOPPING, former)
        assert watched == [(address[1], 7)]
        assert [(each["target_loader"](), each["wrap_loader"]) for each in served] == [(app, False)]
        for each in listeners:
            for level, option in (
                (socket.SOL_SOCKET, socket.SO_REUSEADDR),
                (socket.SOL_SOCKET, socket.SO_REUSEPORT),
                (socket.SOL_SOCKET, socket.SO_ACCEPTCONN),
                (socket.IPPROTO_TCP, socket.TCP_NODELAY),
            ):
                assert each.getsockopt(level, option)


@needs_linux("fork")
def test_sigterm_under_load_answers_on_accepted_and_on_waiting_connections_and_ends_with_0(
    server: subprocess.Popen[str],
) -> None:
    address = httpx.URL(address_of(server))
    printed, running = drain(server), workers_of(server)
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
    with ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection((address.host, address.port), 30)) for _ in range(60)]
        for connection in waiting:
            connection.sendall(REQUEST)
        server.send_signal(signal.SIGTERM)
        assert [connection.recv(100)[:15] for connection in waiting] == [b"HTTP/1.1 200 OK"] * 60
    for caller in callers:
        caller.join(WAIT)
    assert server.wait(WAIT) == 0
    assert set(statuses) == {200}
    assert len(closed) == len(callers)  # each was told, and none lost a reply
    assert not any(map(is_running, running))
    assert "Traceback" not in "".join(printed)
    assert "Killing" not in "".join(printed)
