"""Any bytes that a caller may send: never two replies to one request, and never a reply to a body.

h11, another parser, says which requests there are in the bytes. The server may refuse what h11 accepts: with an error,
and then the connection ends. It must not see a request that h11 does not see.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import h11
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from function.middleware import RequestLimits
from function.server.http_protocol import HttpProtocol
from function.server.limits import LargeBodies, Limits
from tests.function.server.raw_http import read_replies

BODY_LIMIT = 200  # bytes

Seen = tuple[str, str, str]  # method, target and body of a request


class Wire(asyncio.Transport):
    """A connection to a caller that sends what the test says and reads all."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.sent += data

    def write_eof(self) -> None:
        self.is_closed = True

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Read on: what arrives in one segment is parsed even so."""

    def resume_reading(self) -> None:
        """Read on."""


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what was asked."""
    body = (await receive())["body"].decode("latin-1")
    target = scope["raw_path"].decode() + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
    headers = [name.decode("latin-1") for name, _ in scope["headers"]]
    await JSONResponse([scope["method"], target, body, headers])(scope, receive, send)


def send(pieces: Sequence[bytes]) -> Wire:
    """Send pieces on a connection, and return it when the app has nothing more to answer."""

    async def serve() -> Wire:
        config = uvicorn.Config(RequestLimits(echo, 10 * BODY_LIMIT), lifespan="off", ws="none", log_config=None)
        config.load()
        limits = Limits(body_bytes=BODY_LIMIT)
        state = ServerState()
        protocol = HttpProtocol(config, state, {}, limits=limits, large_bodies=LargeBodies())
        wire = Wire()
        protocol.connection_made(wire)
        for piece in pieces:
            if not wire.is_closed:
                protocol.data_received(piece)
            for _ in range(5):
                await asyncio.sleep(0)
        while not wire.is_closed and any(not task.done() for task in state.tasks):
            if protocol.cycle.more_body:
                break  # it waits for the rest of a body
            await asyncio.sleep(0)
        is_closed = wire.is_closed
        wire.close()
        protocol.connection_lost(None)
        await asyncio.gather(*state.tasks, return_exceptions=True)
        wire.is_closed = is_closed
        return wire

    with asyncio.Runner() as runner:
        return runner.run(serve())


def served(pieces: Sequence[bytes]) -> tuple[list[Seen], list[int], bool]:
    """Return the requests that the app answers, the statuses of refusals, and whether the connection is closed."""
    wire = send(pieces)
    replies = read_replies(wire.sent)
    answered = [json.loads(reply.body) for reply in replies if reply.status == 200]
    refused = [reply.status for reply in replies if reply.status != 200]
    assert len(refused) <= 1
    if refused:
        assert replies[-1].status != 200  # the last reply
        assert b"connection: close" in replies[-1].head
        assert wire.is_closed
    return [(method, target, body) for method, target, body, _ in answered], refused, wire.is_closed


def accepted(data: bytes) -> tuple[list[Seen], bool]:
    """Return the requests that h11 reads, and whether it would read on.

    Before a request, h11 refuses the empty lines that RFC 9112, section 2.2, asks servers to skip.
    """
    found: list[Seen] = []
    while data := data.lstrip(b"\r\n"):
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=65_536)
        connection.receive_data(data)
        try:
            request, body = connection.next_event(), b""
            if not isinstance(request, h11.Request):
                return found, True
            while isinstance(event := connection.next_event(), h11.Data):
                body += bytes(event.data)
        except h11.RemoteProtocolError:
            return found, False
        if not isinstance(event, h11.EndOfMessage):
            return found, True
        found.append((request.method.decode(), request.target.decode(), body.decode("latin-1")))
        connection.send(h11.Response(status_code=400, headers=[("content-length", "0")]))
        connection.send(h11.EndOfMessage())
        if connection.our_state is h11.MUST_CLOSE:
            return found, False
        data = connection.trailing_data[0]
    return found, True


def chunked(body: bytes, sizes: Sequence[int], extension: bytes, trailer: bytes) -> bytes:
    """Return a body in chunks of these sizes."""
    sent, start = b"", 0
    for size in [*sizes, len(body)]:
        if part := body[start : start + size]:
            sent += b"%x%s\r\n%s\r\n" % (len(part), extension, part)
            start += len(part)
    return sent + b"0\r\n" + trailer + b"\r\n"


INSIDE = b"GET /inside HTTP/1.1\r\nhost: h\r\n\r\n"
bodies = st.sampled_from([b"", b"{}", INSIDE, b"0\r\n\r\n" + INSIDE, b"\r\n\r\n", b"x" * 150]) | st.binary(max_size=40)
OFFERS = [
    *(b"", b"", b"connection: keep-alive\r\n", b"upgrade: h2c\r\n", b"connection: upgrade\r\nupgrade: foo\r\n"),
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n",
    b"connection: keep-alive\r\nCONNECTION: upgrade\r\nUPGRADE:websocket\r\n",
]
MORE_HEADERS = [b"", b"", b"expect: 100-continue\r\n", b"accept: */*\r\ncookie:\r\n", b"x: %s\r\n" % (b"y" * 300)]


@st.composite
def valid_requests(draw: st.DrawFn) -> bytes:
    """Draw a request that every server must accept."""
    body, offer, more = draw(bodies), draw(st.sampled_from(OFFERS)), draw(st.sampled_from(MORE_HEADERS))
    head = draw(st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE"])) + b" "
    head += draw(st.sampled_from([b"/", b"/similar?a=b", b"/a/b%20c"])) + b" HTTP/1.1\r\n"
    headers = [b"host: h\r\n", offer, more]
    if draw(st.booleans()):
        headers.append(b"Transfer-Encoding: chunked\r\n")
        sizes = draw(st.lists(st.integers(1, 30), max_size=3))
        extension = draw(st.sampled_from([b"", b";a=b", b';a="b"']))
        sent = chunked(body, sizes, extension, draw(st.sampled_from([b"", b"x: y\r\n", b"upgrade: x\r\n"])))
    else:
        headers.append(b"content-length: %d\r\n" % len(body))
        sent = body
    return head + b"".join(draw(st.permutations(headers))) + b"\r\n" + sent


HOSTILE = [
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\ncontent-length: 4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4, 4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: +4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length : 4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0x4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length:\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 201\r\n\r\n" + b"x" * 201,
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n%s"
    % (5 + 31, INSIDE),
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked, gzip\r\n\r\n1\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding:\r\n chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1 ;a\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1;\na\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\na",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\ncontent-length: 30\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nc9\r\n%s\r\n0\r\n\r\n" % (b"x" * 201),
    b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nab",
    b"GET / HTTP/1.1\r\nhost: h\r\nx: a\r\n b\r\n\r\n",
    b"GET / HTTP/1.1\r\n host: h\r\n\r\n",
    b"GET / HTTP/1.1\nhost: h\n\n",
    b"GET / HTTP/1.1\r\nhost: h\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nx: a\rb\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\n: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nx y: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nhost: i\r\n\r\n",
    b"GET / HTTP/1.1 \r\nhost: h\r\n\r\n",
    b"GET / HTTP/1.2\r\nhost: h\r\n\r\n",
    b"GET / HTTP/2.0\r\nhost: h\r\n\r\n",
    b"GET / HTTP/0.9\r\nhost: h\r\n\r\n",
    b"GET /\r\n",
    b"GET /\xe9 HTTP/1.1\r\nhost: h\r\n\r\n",
    b"GET * HTTP/1.1\r\nhost: h\r\n\r\n",
    b"get / HTTP/1.1\r\nhost: h\r\n\r\n",
    b"BREW / HTTP/1.1\r\nhost: h\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT h:443 HTTP/1.1\r\nhost: h\r\n\r\n",
    b"CONNECT h:443 HTTP/1.1\r\nhost: h\r\ncontent-length: 31\r\n\r\n" + INSIDE,
    b"CONNECT / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close, upgrade\r\nupgrade: h2c\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 201\r\n\r\n" + b"x" * 201,
    b"POST / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 1\r\n\r\nx",
    b"GET / HTTP/1.0\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\0" * 30,
]
LONG = b"GET / HTTP/1.1\r\nhost: h\r\nx: %s" % (b"y" * 70_000)
raw_messages = st.lists(valid_requests() | st.sampled_from(HOSTILE) | st.binary(max_size=60), min_size=1, max_size=4)


@st.composite
def cut(draw: st.DrawFn, messages: st.SearchStrategy[list[bytes]]) -> list[bytes]:
    """Draw bytes, in pieces."""
    data = b"".join(draw(messages))
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@settings(max_examples=200)
@given(pieces=cut(st.lists(valid_requests(), min_size=1, max_size=4)))
def test_every_valid_request_gets_one_reply(pieces: list[bytes]) -> None:
    expected, goes_on = accepted(b"".join(pieces))
    assert expected
    assert goes_on
    assert served(pieces) == (expected, [], False)


def test_headers_after_a_body_in_chunks_are_no_headers_of_the_request() -> None:
    head = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
    sent = head + chunked(b"ab", [1], b"", b"authorization: x\r\n")
    (reply,) = read_replies(send([sent]).sent)
    assert json.loads(reply.body) == ["POST", "/", "ab", ["host", "transfer-encoding"]]


@settings(max_examples=200)
@given(pieces=cut(raw_messages))
def test_no_request_is_answered_that_another_parser_does_not_see(pieces: list[bytes]) -> None:
    expected, goes_on = accepted(b"".join(pieces))
    found, refused, is_closed = served(pieces)
    assert found == expected[: len(found)]
    assert is_closed or (len(found) == len(expected) and goes_on)
    assert len(found) == len(expected) or refused


@pytest.mark.parametrize("hostile", [*HOSTILE, LONG], ids=lambda hostile: repr(hostile[:70]))
def test_a_hostile_message_gets_one_reply_at_most_wherever_it_is_cut(hostile: bytes) -> None:
    expected, _ = accepted(hostile + INSIDE)
    for place in range(min(len(hostile), 300) + 1):
        found, refused, _ = served([hostile[:place], hostile[place:] + INSIDE])
        assert found == expected[: len(found)]
        assert len(found) + len(refused) <= max(1, len(expected))
        assert len(found) == len(expected) or refused
