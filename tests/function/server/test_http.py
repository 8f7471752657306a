"""HTTP over raw sockets, which granian reads: one reply for each request at most, and limits of its size."""

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.function.server.running import WAIT, address_of, drain, started

POST = b"POST /tokenize HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n"
INSIDE = b"GET /info HTTP/1.1\r\nhost: h\r\n\r\n"
LAST = b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
BODY = b'{"inputs": "upgrade: h2c\\r\\n\\r\\n"}'
STATUS = re.compile(rb"HTTP/1\.[01] (\d\d\d) ")  # no reply here has it in its body

Address = tuple[str, int]


@pytest.fixture(scope="module")
def address(bundle: Path) -> Iterator[Address]:
    """A server in a process of its own, for all tests."""
    with started(bundle) as server:
        url = httpx.URL(address_of(server))
        assert url.port is not None
        drain(server)
        yield url.host, url.port


def exchange(address: Address, messages: Sequence[Sequence[bytes]]) -> list[list[int]]:
    """Send each message on a connection of its own, piece by piece; return the statuses of the replies to it."""
    with ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection(address, WAIT)) for _ in messages]
        for number in range(max(map(len, messages))):
            for caller, pieces in zip(callers, messages, strict=True):
                caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if number < len(pieces):
                    caller.sendall(pieces[number])
        return [[int(status) for status in STATUS.findall(receive_all(caller))] for caller in callers]


def receive_all(caller: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    received = b""
    while part := caller.recv(65_536):
        received += part
    return received


OFFERS = [
    b"connection: Upgrade\r\nupgrade: foo\r\n",
    b"connection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n",
    b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n",
    b"connection:\t upgrade \t\r\nupgrade:\t h2c \t\r\n",
    b"upgrade: h2c, websocket\r\nupgrade: foo/2\r\nconnection: close2, upgrade\r\n",
    b"connection: upgrade\r\nupgrade:\r\n",
    b"upgrade: h2c\r\n",
]
FRAMED = [
    b"content-length: %d\r\n\r\n%s" % (len(INSIDE), INSIDE),
    b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(INSIDE), INSIDE),
]


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_of_another_protocol_is_ignored_and_a_body_is_never_taken_for_a_request(
    address: Address, offer: bytes
) -> None:
    whole = POST + offer + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    assert exchange(address, [[whole * 2 + LAST]]) == [[200, 200, 200]]
    for framed in FRAMED:
        message = POST + offer + framed
        cuts = range(1, len(message), 7)
        found = exchange(address, [[message[:cut], message[cut:] + message + LAST] for cut in cuts])
        assert found == [[400, 400, 200]] * len(cuts)


HOSTILE = [
    b"content-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
    b"content-length: 4, 4\r\n\r\nabcd",
    b"content-length: +4\r\n\r\nabcd",
    b"content-length : 4\r\n\r\nabcd",
    b"content-length: -1\r\n\r\n",
    b"content-length: %d\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n%s" % (5 + len(INSIDE), INSIDE),
    b"transfer-encoding: chunked, gzip\r\n\r\n1\r\na\r\n0\r\n\r\n",
    b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding:\r\n chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n1;\na\r\na\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n2\r\na\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\na",
    b"x: a\rb\r\n\r\n",
    b"x y: a\r\n\r\n",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: repr(hostile[:70]))
def test_a_request_that_cannot_be_read_gets_one_reply_which_is_an_error(address: Address, hostile: bytes) -> None:
    message = POST + hostile
    cuts = range(len(POST), len(message), 5)
    for found in exchange(address, [[message[:cut], message[cut:] + INSIDE + LAST] for cut in cuts]):
        assert len(found) == 1
        assert 400 <= found[0] < 500


def test_a_body_that_is_too_large_is_refused_before_it_is_sent_and_clients_read_the_reply(address: Address) -> None:
    head = POST + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n"
    with socket.create_connection(address, WAIT) as caller:
        caller.sendall(head % 7_000_000)
        assert caller.recv(12) == b"HTTP/1.1 413"
    (found,) = exchange(address, [[head % len(BODY) + BODY + LAST]])
    assert found == [100, 200, 200]
    large = b" " * 30_000_000
    for content in (large, iter([large[:1_000_000]] * 30)):  # with its length, and in chunks
        reply = httpx.post(f"http://{address[0]}:{address[1]}/similar", content=content, trust_env=False, timeout=WAIT)
        assert reply.status_code == 413


def test_a_head_that_is_too_large_is_refused(address: Address) -> None:
    with socket.create_connection(address, WAIT) as caller:
        caller.sendall(b"GET /health HTTP/1.1\r\nhost: h\r\nx: %s" % (b"y" * 500_000))
        assert caller.recv(12) == b"HTTP/1.1 431"
