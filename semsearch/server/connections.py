"""The connections of a worker: their number, and the silent ones, which are closed when all are taken.

granian accepts a number of connections, lets all others wait, and reports none of that. So callers that connect and
send nothing would keep everyone out until the idle timeout, also GET /health. Here the system is asked for the sockets
of this process. Where it does not list them, nothing is counted and closed.
"""

import asyncio
import os
import select
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from semsearch.app.telemetry import Log

SECONDS_BETWEEN_COUNTS = 1.0
SILENT_LOOKS = 5  # looks in a row without a request; counted, because a busy event loop learns of requests late
LOOKS_BETWEEN_LINES = 60  # in the log
OPEN_FILES = Path("/dev/fd")  # Linux and macOS list the open files of a process here

Peer = tuple[str, int]  # address and port


class Connections:
    """Counts the open connections of a process at each look, and closes silent ones when there are `most`."""

    def __init__(self, port: int, most: int, log: Log, report: Callable[[int], None]) -> None:
        """Watch the connections to this port, of which a process accepts `most`. `report` gets their number."""
        self._port, self._most = port, most
        self._log, self._report = log, report
        self._answering: set[Peer] = set()
        self._heard: set[Peer] = set()  # since the last look
        self._silent: dict[Peer, int] = {}  # looks in a row
        self._closed = 0  # since the last line in the log
        self._looks_until_line = 0

    def begin(self, peer: Peer) -> None:
        """Note that a request has begun."""
        self._answering.add(peer)

    def end(self, peer: Peer) -> None:
        """Note that a request was answered."""
        self._answering.discard(peer)
        self._heard.add(peer)

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_COUNTS)
            await self.look()

    async def look(self) -> None:
        """Count the connections. If all are taken, close those that were silent for some looks, and log that."""
        found = await asyncio.to_thread(self._find)
        heard, self._heard = self._heard | self._answering, set()
        self._silent = {
            peer: self._silent.get(peer, -1) + 1 for peer, has_all in found.items() if has_all and peer not in heard
        }
        self._report(len(found))
        self._looks_until_line -= 1
        if len(found) < self._most:
            return
        closed = {peer for peer, looks in self._silent.items() if looks >= SILENT_LOOKS}
        await asyncio.to_thread(self._close, closed)
        self._closed += len(closed)
        if self._looks_until_line <= 0:
            seconds = round(SILENT_LOOKS * SECONDS_BETWEEN_COUNTS)
            rule = f"those without a request for {seconds} s are closed"
            advice = "let a proxy limit the connections of one caller, or raise it"
            error = f"--max-connections: {len(found)} of {self._most} are open, further ones wait; {rule}; {advice}"
            self._log.error("all connections are taken", extra={"error": error, "closed": self._closed})
            self._closed, self._looks_until_line = 0, LOOKS_BETWEEN_LINES

    def _find(self) -> dict[Peer, bool]:
        """Return the peers of the open connections, and whether all of a reply has left this process."""
        found = {}
        for peer, connection in self._sockets():
            poll = select.poll()
            poll.register(connection, select.POLLOUT)
            found[peer] = bool(poll.poll(0))
        return found

    def _close(self, peers: set[Peer]) -> None:
        """Close connections for granian, which then closes its own end."""
        for peer, connection in self._sockets():
            if peer in peers and peer not in self._answering:
                with suppress(OSError):  # the caller has just closed it
                    connection.shutdown(socket.SHUT_RDWR)

    def _sockets(self) -> Iterator[tuple[Peer, socket.socket]]:
        """Yield each connection of this process to the port, as a copy that is open until the next one."""
        numbers = []
        with suppress(OSError):  # the system does not list them
            numbers = [int(path.name) for path in OPEN_FILES.iterdir()]
        for number in numbers:
            # an OSError means that granian has just closed it, or that it is a listening socket
            with suppress(OSError):
                if not stat.S_ISSOCK(os.fstat(number).st_mode):
                    continue
                with socket.socket(fileno=os.dup(number)) as connection:
                    is_ours = connection.family != socket.AF_UNIX and connection.getsockname()[1] == self._port
                    if is_ours:
                        yield as_peer(connection.getpeername()), connection


def as_peer(address: Sequence[Any]) -> Peer:
    """Return the peer of an address of a socket, or of a request's scope, whose port is a string."""
    return str(address[0]).partition("%")[0], int(address[1])  # without the zone of a local IPv6 address
