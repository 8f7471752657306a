"""Replies in JSON are compressed where that helps, by the server and through Lambda's events."""

import base64
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from semsearch.app.http import Receive, Reply, Scope, Send
from semsearch.app.middleware import COMPRESSED_FROM, compress_replies, takes_gzip
from semsearch.engine.embedder import Embedder
from semsearch.search.executor import Executor
from tests.function.events.event_makers import MAKERS, taking_gzip
from tests.world import InProcess

BROWSER = "gzip, deflate, br, zstd"
MANY = {"text": ["an angry goose"] * 50}
FEW = {"text": "an angry goose"}


def raw(client: httpx.Client, method: str, path: str, accepted: str, **request: Any) -> tuple[httpx.Headers, bytes]:
    """Return the headers and the bytes of a reply as they were sent, for this Accept-Encoding."""
    with client.stream(method, path, headers={"accept-encoding": accepted}, **request) as reply:
        assert reply.status_code == 200
        return reply.headers, b"".join(reply.iter_raw())


def of_each_reply(headers: httpx.Headers) -> dict[str, str]:
    """Return headers without those that differ in each reply."""
    return {name: value for name, value in headers.items() if name not in ("server-timing", "x-request-id")}


REQUESTS = [
    ("POST", "/predict", {"json": MANY}),  # answered without FastAPI
    ("POST", "/embed", {"json": {"inputs": MANY["text"]}}),
    ("GET", "/openapi.json", {}),
]


@pytest.mark.parametrize(("method", "path", "request_"), REQUESTS)
def test_a_large_reply_is_compressed_for_callers_that_take_gzip(
    client: httpx.Client, method: str, path: str, request_: dict[str, Any]
) -> None:
    headers, sent = raw(client, method, path, BROWSER, **request_)
    plain_headers, plain = raw(client, method, path, "br", **request_)
    assert gzip.decompress(sent) == plain
    assert len(sent) < len(plain) / 2
    compressed = {"content-encoding": "gzip", "content-length": str(len(sent)), "vary": "accept-encoding"}
    assert of_each_reply(headers) == of_each_reply(plain_headers) | compressed
    assert "content-encoding" not in plain_headers


def test_a_small_reply_is_the_same_whatever_the_caller_takes(client: httpx.Client) -> None:
    headers, sent = raw(client, "POST", "/predict", BROWSER, json=FEW)
    plain_headers, plain = raw(client, "POST", "/predict", "", json=FEW)
    assert (sent, of_each_reply(headers)) == (plain, of_each_reply(plain_headers))


def test_head_has_the_headers_of_get(client: httpx.Client) -> None:
    got, _ = raw(client, "GET", "/openapi.json", BROWSER)
    headers, sent = raw(client, "HEAD", "/openapi.json", BROWSER)
    assert (sent, of_each_reply(headers)) == (b"", of_each_reply(got))


@pytest.fixture
def answering_with(embedder: Embedder) -> Callable[..., httpx.Client]:
    """Return what makes a client of an app that always answers with one reply."""

    def connect(body: bytes, headers: dict[str, str]) -> httpx.Client:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await Reply(body, headers=headers)(scope, receive, send)

        return httpx.Client(transport=InProcess(compress_replies(app, Executor(embedder))), base_url="http://tests")

    return connect


LEAST = b"[" + b"0," * (COMPRESSED_FROM // 2 - 2) + b"10]"
NOISE = json.dumps(base64.b64encode(random.Random(3).randbytes(COMPRESSED_FROM)).decode()).encode()


@pytest.mark.parametrize(
    ("body", "headers", "is_compressed"),
    [
        (LEAST, {}, True),
        (LEAST[:-1], {}, False),
        (LEAST, {"content-type": "application/json; charset=utf-8"}, True),
        (LEAST, {"content-type": "text/plain"}, False),
        (gzip.compress(NOISE), {"content-encoding": "gzip"}, False),
        (NOISE, {}, False),  # base64, which Lambda needs, would make it longer again
        (json.dumps([NOISE.decode(), "0" * len(NOISE)]).encode(), {}, True),  # three eighths of it are left
        (json.dumps([NOISE.decode(), "0" * 2_000]).encode(), {}, True),  # seven tenths of it are left
    ],
    ids=["least", "one byte less", "charset", "text", "compressed already", "noise", "half noise", "most noise"],
)
def test_only_json_above_a_size_that_becomes_much_smaller_is_compressed(
    answering_with: Callable[..., httpx.Client], body: bytes, headers: dict[str, str], is_compressed: bool
) -> None:
    assert len(LEAST) == COMPRESSED_FROM
    client = answering_with(body, headers)
    found, sent = raw(client, "GET", "/", "gzip")
    assert int(found["content-length"]) == len(sent)
    if is_compressed:
        assert (gzip.decompress(sent), found["vary"]) == (body, "accept-encoding")
    else:
        assert (sent, found.get("content-encoding")) == (body, headers.get("content-encoding"))


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        *((text, True) for text in ("gzip", BROWSER, "GZIP;q=0.5", "*", "br;q=1, *;q=0.1", "gzip;q=0.001")),
        *((text, False) for text in ("", "identity", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "x-gzip-2")),
    ],
)
def test_accept_encoding_is_read_with_its_weights(accepted: str, expected: bool) -> None:
    """RFC 9110, section 12.5.3."""
    assert takes_gzip({"headers": [(b"accept-encoding", accepted.encode())]}) is expected


@pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])
def test_in_lambda_a_compressed_reply_is_base64_that_is_shorter_than_the_reply(
    answer: Callable[[object], dict[str, Any]], make: Callable[..., dict[str, Any]]
) -> None:
    event = make("POST", "/predict", json.dumps(MANY))
    plain, packed = answer(event), answer(taking_gzip(event))
    assert (plain["statusCode"], plain["isBase64Encoded"]) == (200, False)
    if "resource" in event:  # an API that may not know what is binary
        assert packed["body"] == plain["body"]
    else:
        assert packed["isBase64Encoded"] is True
        assert gzip.decompress(base64.b64decode(packed["body"])).decode() == plain["body"]
        assert len(packed["body"]) < len(plain["body"])


def test_compressing_is_no_phase_of_its_own(client: httpx.Client) -> None:
    for path, request_ in (("/predict", MANY), ("/predict", FEW)):
        headers, _ = raw(client, "POST", path, BROWSER, json=request_)
        phases = [phase.partition(";")[0] for phase in headers["server-timing"].split(", ")]
        assert phases == ["parse", "embed", "reply", "total"]
    headers, _ = raw(client, "GET", "/openapi.json", BROWSER)
    assert headers["server-timing"].startswith("total;dur=")
