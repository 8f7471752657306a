"""HTTP as bytes: what is sent over a socket in pieces, and the replies that come back."""

import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    head: bytes
    body: bytes


def read_replies(received: bytes) -> list[Reply]:
    """Return the replies to requests other than HEAD; each must be whole. Interim replies (100) are left out."""
    found = []
    while received:
        head, end, received = received.partition(b"\r\n\r\n")
        assert end, f"the reply ends within its head: {head!r}"
        status = int(head[9:12])
        if status == 100:
            continue
        length = LENGTH.search(head + b"\r\n")
        assert length, head
        assert len(received) >= int(length[1]), f"the reply's body is shorter than {length[1]!r} bytes"
        found.append(Reply(status, head, received[: int(length[1])]))
        received = received[int(length[1]) :]
    return found


def connected(address: tuple[str, int]) -> socket.socket:
    """Connect to a server. What takes 30 seconds has failed."""
    caller = socket.create_connection(address, timeout=30)
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return caller


def receive_all(caller: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    received = b""
    while part := caller.recv(65_536):
        received += part
    return received


def exchange(address: tuple[str, int], messages: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Send each message on a connection of its own, piece by piece, and return what comes back until it is closed.

    The connections take turns: a piece is sent on each, then, after a while, the next one.
    """
    with ExitStack() as stack:
        callers = [stack.enter_context(connected(address)) for _ in messages]
        for number in range(max(map(len, messages))):
            for caller, pieces in zip(callers, messages, strict=True):
                if number < len(pieces) and pieces[number]:
                    caller.sendall(pieces[number])
            time.sleep(0.03)  # the server reads what was sent so far by itself
        return [receive_all(caller) for caller in callers]


def receive_reply(caller: socket.socket) -> Reply:
    """Return the next reply on a connection that stays open. The system may deliver it in several pieces."""
    received = b""
    while part := caller.recv(65_536):
        received += part
        head, end, body = received.partition(b"\r\n\r\n")
        length = LENGTH.search(head + b"\r\n")
        if end and length and len(body) >= int(length[1]):
            break
    (reply,) = read_replies(received)
    return reply
