"""The server's HTTP over raw sockets: one reply for each request, whatever it offers and wherever it is cut."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.function.server.raw_http import exchange, read_replies
from tests.function.server.running import address_of, started

LAST = b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
SMUGGLED = b"GET /info HTTP/1.1\r\nhost: h\r\n\r\n"


@pytest.fixture(scope="module")
def address(bundle: Path) -> Iterator[tuple[str, int]]:
    """A server in a process of its own, for all tests."""
    with started(bundle) as server:
        url = httpx.URL(address_of(server))
        assert url.port is not None
        assert server.stdout is not None
        threading.Thread(target=server.stdout.read, daemon=True).start()  # a full pipe would stop the server
        yield url.host, url.port


def statuses(received: bytes) -> list[int]:
    return [reply.status for reply in read_replies(received)]


OFFERS = {
    "another protocol": b"connection: Upgrade\r\nupgrade: foo\r\n",
    "websocket": b"connection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n",
    "HTTP/2, as Java does": b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n",
    "in capitals, without spaces": b"CONNECTION:UPGRADE\r\nUPGRADE:H2C\r\n",
    "with tabs and spaces": b"connection:\t upgrade \t\r\nupgrade:\t h2c \t\r\n",
    "several": b"upgrade: h2c, websocket\r\nupgrade: foo/2\r\nconnection: close2, upgrade\r\n",
    "two connection headers": b"connection: keep-alive\r\nconnection: upgrade\r\nupgrade: h2c\r\n",
    "empty": b"connection: upgrade\r\nupgrade:\r\n",
    "without an upgrade header": b"connection: upgrade\r\n",
    "without a connection header": b"upgrade: h2c\r\n",
}
FRAMED = {
    "content-length": b"content-length: %d\r\n\r\n%s" % (len(SMUGGLED), SMUGGLED),
    "chunked": b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
}


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_to_go_on_in_another_protocol_is_ignored_and_the_body_read(
    address: tuple[str, int], offer: str
) -> None:
    body = b'{"text": "upgrade: h2c\\r\\n\\r\\n"}'
    head = b"POST /predict HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n" + OFFERS[offer]
    request = head + b"content-length: %d\r\n\r\n" % len(body) + body
    (received,) = exchange(address, [[request * 2 + LAST]])
    assert statuses(received) == [200, 200, 200]


@pytest.mark.parametrize("framing", FRAMED)
@pytest.mark.parametrize("offer", OFFERS)
def test_a_body_is_never_taken_for_a_request_wherever_the_bytes_are_cut(
    address: tuple[str, int], offer: str, framing: str
) -> None:
    head = b"POST /similar HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n"
    message = head + OFFERS[offer] + FRAMED[framing]
    sent = message + message + LAST
    cuts = range(len(message) + 1)
    found = exchange(address, [[sent[:cut], sent[cut:]] for cut in cuts])
    assert [statuses(received) for received in found] == [[400, 400, 200]] * len(cuts)


REFUSED = {
    b"GET /health HTTP/1.1\r\n\r\n": "host: 0 such headers, expected one; correct the client",
    b"GET /health HTTP/1.1\r\nhost: h\r\nhost: h\r\n\r\n": "host: 2 such headers, expected one; correct the client",
    b"GET /health HTTP/2.0\r\nhost: h\r\n\r\n": "request: HTTP/2.0, expected HTTP/1.1; correct the client",
    b"GET /health\r\nhost: h\r\n\r\n": "request: HTTP/0.9, expected HTTP/1.1; correct the client",
    b"CONNECT h:443 HTTP/1.1\r\nhost: h\r\n\r\n": "request: CONNECT, expected a method for a path, such as GET",
    b"GET http:///x HTTP/1.1\r\nhost: h\r\n\r\n": "request: its target has no path, expected HTTP/1.1 as in RFC 9112",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "request: cannot be read (Pause on PRI/Upgrade), expected HTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01\x00": "request: cannot be read (Invalid method encountered), expected HTTP/1.1",
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n": "transfer-encoding: 'gzip, chunked'",
}


@pytest.mark.parametrize("request_", REFUSED, ids=repr)
def test_a_request_that_cannot_be_read_gets_a_400_that_says_why(address: tuple[str, int], request_: bytes) -> None:
    (received,) = exchange(address, [[request_ + LAST]])
    (reply,) = read_replies(received)
    assert reply.status == 400
    body = json.loads(reply.body)
    assert body["error"].startswith(REFUSED[request_])
    assert body["error_type"] == "bad_request"


def test_an_error_waits_for_the_replies_to_the_requests_before_it(address: tuple[str, int]) -> None:
    body = b'{"text": "goose"}'
    request = (
        b"POST /predict HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    in_chunks = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"
    found = exchange(address, [[(request + body) * 3 + wrong + LAST] for wrong in (b"nonsense\r\n\r\n", in_chunks)])
    assert [statuses(received) for received in found] == [[200, 200, 200, 400]] * 2


def test_only_a_body_that_is_read_is_asked_for_with_100(address: tuple[str, int]) -> None:
    head = b"POST /health HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n"
    found = exchange(address, [[head % 2, b"{}" + LAST], [head % 10_000_000]])
    assert [received.count(b"HTTP/1.1 100 Continue") for received in found] == [1, 0]
    assert [statuses(received) for received in found] == [[405, 200], [413]]
