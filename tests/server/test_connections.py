"""Silent connections, over real sockets, whose both ends are in this process."""

import asyncio
import gc
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from semsearch.server import connections
from semsearch.server.connections import LOOKS_BETWEEN_LINES, OPEN_FILES, SILENT_LOOKS, Connections, as_peer

pytestmark = pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd, which lists open files")

Pair = tuple[socket.socket, socket.socket]  # the caller's end and the server's


class Rig:
    """A port with connections, as a worker has them, of which it accepts three."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.counts: list[int] = []
        port = self._listener.getsockname()[1]
        self.connections = Connections(port, 3, logging.getLogger("tests"), self.counts.append)

    def connect(self) -> Pair:
        caller = self._stack.enter_context(socket.create_connection(self._listener.getsockname()))
        own, _ = self._listener.accept()
        caller.settimeout(60)
        return caller, self._stack.enter_context(own)

    def look(self, times: int) -> None:
        for _ in range(times):
            asyncio.run(self.connections.look())


@pytest.fixture
def rig() -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(stack)


def is_open(pair: Pair) -> bool:
    caller, own = pair
    try:
        own.sendall(b"x")
    except BrokenPipeError:
        assert caller.recv(1) == b""
        return False
    return caller.recv(1) == b"x"


def test_silent_connections_are_closed_when_all_are_taken_and_no_others(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    silent, asking = rig.connect(), rig.connect()
    rig.connections.begin(as_peer(asking[0].getsockname()))
    rig.look(SILENT_LOOKS + 2)
    assert rig.counts[-1] == 2
    assert is_open(silent)  # one more is free
    late = rig.connect()
    rig.look(1)
    assert [is_open(pair) for pair in (silent, asking, late)] == [False, True, True]
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "all connections are taken")
    found, rule = "--max-connections: 3 of 3 are open, further ones wait", "those without a request for 5 s are closed"
    assert record.__dict__["error"].startswith(f"{found}; {rule}; ")


def test_a_connection_is_silent_from_its_last_reply_on(rig: Rig) -> None:
    pairs = [rig.connect() for _ in range(3)]
    peer = as_peer(pairs[0][0].getsockname())
    rig.look(SILENT_LOOKS)
    assert all(map(is_open, pairs))
    rig.connections.begin(peer)
    rig.connections.end(peer)
    rig.look(1)
    assert [is_open(pair) for pair in pairs] == [True, False, False]
    rig.look(SILENT_LOOKS + 1)
    assert not is_open(pairs[0])


async def test_the_connections_are_looked_at_again_and_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_BETWEEN_COUNTS", 0.0)
    watching = asyncio.create_task(rig.connections.watch())
    while len(rig.counts) < 3:
        await asyncio.sleep(0.001)
        assert not watching.done()
    watching.cancel()
    assert rig.counts[:3] == [0, 0, 0]


def test_a_caller_that_receives_its_reply_slowly_is_not_silent(rig: Rig) -> None:
    pairs = [rig.connect() for _ in range(3)]
    receiving = pairs[0]
    receiving[1].setblocking(False)
    with suppress(BlockingIOError):  # there is no more room
        while True:
            receiving[1].send(b"x" * 100_000)
    rig.look(SILENT_LOOKS + 2)
    assert [is_open(pair) for pair in pairs[1:]] == [False, False]
    assert receiving[0].recv(1) == b"x"
    receiving[1].shutdown(socket.SHUT_WR)  # it is still open


def test_the_log_has_a_line_a_minute_with_the_number_of_closed_connections(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [rig.connect() for _ in range(3)]
    rig.look(SILENT_LOOKS + 1)
    for _, own in pairs:
        own.close()
    rig.look(LOOKS_BETWEEN_LINES - SILENT_LOOKS - 1)
    for _ in range(3):
        rig.connect()
    closed = [record.__dict__["closed"] for record in caplog.records]
    gc.collect()  # files of other tests are closed now, and not between the two counts
    open_files = len(list(OPEN_FILES.iterdir()))
    rig.look(1)
    assert [closed, [record.__dict__["closed"] for record in caplog.records]] == [[0], [0, 3]]
    assert len(list(OPEN_FILES.iterdir())) == open_files
    rig.look(LOOKS_BETWEEN_LINES - 1)
    assert len(caplog.records) == 2
