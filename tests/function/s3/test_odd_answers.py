"""Odd answers of S3: they are read or become an error, and the next answer is read."""

import tempfile
from http.client import HTTPConnection
from pathlib import Path

import pytest

from function.s3 import objects
from function.s3.objects import Answer, Objects, RemoteError
from tests.function.s3.asking import Start
from tests.stand_ins.faults import Exchange, Fault, Proxy, dawdle
from tests.stand_ins.fixtures import Publish

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "TRIES", 1)


ODD: dict[str, tuple[bytes, str | None]] = {
    "chunked": (CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", None),
    "until the end": (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello", None),
    "chunks of no length": (CHUNKED + b"x\r\n", "IncompleteRead"),
    "too many headers": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200, "more than 100 headers"),
    "no HTTP": (b"SSH-2.0-x\r\n\r\n", "SSH-2.0"),
    "nothing": (b"", "without response"),
}


@pytest.mark.parametrize(("content", "message"), ODD.values(), ids=ODD)
def test_an_odd_answer_is_read_or_told_and_the_next_one_is_read(
    proxy: Proxy, content: bytes, message: str | None
) -> None:
    objects_there = Objects("s3://bucket/x", KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address})
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

    def send(what: bytes) -> Fault:
        def answer(exchange: Exchange) -> None:
            exchange.connection.sendall(what)
            exchange.close_connection = True

        return answer

    proxy.fail("current.json", send(content), times=1)
    proxy.fail("current.json", send(whole))
    if message is None:
        assert objects_there.read("current.json") == Answer(b"hello", "")
    else:
        with pytest.raises(RemoteError, match=message):
            objects_there.read("current.json")
    objects_there.close()
    assert objects_there.read("current.json") == Answer(b"hello", "")


def test_an_answer_that_is_longer_than_a_pointer_can_be_is_refused(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    switch, _ = start()
    monkeypatch.setattr(objects, "LARGEST_DOCUMENT", 1000)
    large = b"{" * 2000
    proxy.fail("current.json", lambda exchange: exchange.answer(200, {}, large))
    switch.poll()
    assert "current.json: has more than 1000 bytes" in str(switch.status.error)


def test_a_connection_serves_many_answers(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[object] = []
    connect = HTTPConnection.connect

    def count(connection: HTTPConnection) -> None:
        connected.append(connection)
        connect(connection)

    monkeypatch.setattr(HTTPConnection, "connect", count)
    answers: list[Fault] = [
        lambda exchange: exchange.answer(200, {}, b"hello"),
        lambda exchange: exchange.connection.sendall(CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"),
        lambda exchange: exchange.answer(304, {}, b""),
        lambda exchange: exchange.answer(200, {}, b""),
        lambda exchange: exchange.answer(206, {}, b"hello"),
        lambda exchange: exchange.answer(200, {}, b"bye"),
    ]
    for answer in answers:
        proxy.fail("current.json", answer, times=1)
    there = Objects("s3://bucket/x", KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address})
    contents = [there.read("current.json"), there.read("current.json"), there.read("current.json", "x")]
    assert contents == [Answer(b"hello", ""), Answer(b"hello", ""), None]
    assert there.read("current.json") == Answer(b"", "")
    with tempfile.TemporaryFile() as file:
        there.copy_part("current.json", 0, 5, file.fileno())
    assert there.read("current.json") == Answer(b"bye", "")
    assert len(connected) == 1
    there.close()


def test_an_answer_that_stops_is_an_error(proxy: Proxy) -> None:
    proxy.fail("current.json", dawdle)
    there = Objects("s3://bucket/x", KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address}, timeout=0.1)
    with pytest.raises(RemoteError, match=r"current\.json: timed out, 1 times"):
        there.read("current.json")
