"""What a Search sends to a server, and what it says when a request fails."""

import socket
import ssl
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from semsearch.client import ServerError
from semsearch.client.requests import Contents
from semsearch.client.server import EndpointBehindProxy, RemoteServer, _pause, _Reply
from tests.stand_ins.http import Handler, listening

URL = "https://search.example.com:8443"


def server_with(**info: Any) -> RemoteServer:
    """Return a server whose GET /info has been asked for already."""
    server = RemoteServer(URL, None, None, 2.5)
    server._info = info
    return server


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [["ab", "cd", "é"]]),
        ({"embeddings": 2}, [["ab", "cd"], ["é"]]),
        ({"embeddings": 1}, [["ab"], ["cd"], ["é"]]),
        ({"characters": 5}, [["ab", "cd", "é"]]),
        ({"characters": 4}, [["ab", "cd"], ["é"]]),
        ({"characters": 3}, [["ab"], ["cd", "é"]]),
        # in JSON, each text takes 6 bytes, and the last one 10
        ({"body_bytes": 122}, [["ab", "cd", "é"]]),
        ({"body_bytes": 121}, [["ab", "cd"], ["é"]]),
        ({"body_bytes": 112}, [["ab", "cd"], ["é"]]),
        ({"body_bytes": 111}, [["ab"], ["cd"], ["é"]]),
    ],
)
def test_texts_are_sent_in_batches_that_reach_the_limits(limits: dict[str, int], expected: list[list[str]]) -> None:
    several = {"embeddings": 9, "characters": 99, "body_bytes": 999} | limits
    assert server_with(limits=several)._batches(["ab", "cd", "é"]) == expected


class FewTokens(RemoteServer):
    """A server that takes texts of three words in a request."""

    def _ask(self, method: str, path: str, body: Any, field: str) -> dict[str, Any]:
        self.__dict__.setdefault("asked", []).append((method, path, body, field))
        if sum(len(text.split()) for text in body["text"]) > 3:
            self._refuse(_Reply(413, {}, b'{"error": "text: too many tokens"}'), "POST /predict")
        return {"embeddings": [[len(text.split())] for text in body["text"]]}


def test_texts_with_too_many_tokens_are_sent_in_halves() -> None:
    server = FewTokens(URL, None, None, 1)
    found = server._embed_halves(["a", "b c", "d", "e", "f g h"], "query")
    assert found.tolist() == [[1], [2], [1], [1], [3]]
    assert found.dtype == np.float32
    asked = server.__dict__["asked"]
    assert asked[1] == ("POST", "/predict", {"text": ["a", "b c"], "prompt_name": "query"}, "embeddings")
    assert [body["text"] for _, _, body, _ in asked] == [
        ["a", "b c", "d", "e", "f g h"],
        ["a", "b c"],
        ["d", "e", "f g h"],
        ["d"],
        ["e", "f g h"],
        ["e"],
        ["f g h"],
    ]
    with pytest.raises(ValueError, match=r"^text: too many tokens$"):
        server._embed_halves(["a b c d"], None)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (
            {
                "index": {"rows": 7, "columns": {"a": "number"}},
                "bundle": {"removed": 2, "version": "abc"},
                "model": {"name": "m"},
                "made": "2026-11-27T10:00:00Z",
            },
            Contents("m", "abc", 5, {"a": "number"}, True, "2026-11-27T10:00:00Z"),
        ),
        (
            {"index": {"rows": 7, "columns": {}, "vectors": {"bucket": "b"}}, "model": {"name": "m"}},
            Contents("m", None, 7, {}, False, ""),
        ),
    ],
)
def test_contents_are_what_a_server_says_of_its_bundle(info: dict[str, Any], expected: Contents) -> None:
    assert server_with(**info).contents() == expected


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(), "nothing answers there; start a server with `semsearch serve BUNDLE`, or check"),
        (TimeoutError(), "no answer within 2.5 seconds; pass a larger `timeout`"),
        (socket.gaierror(), "there is no machine with the name 'search.example.com'; check the address"),
        (ssl.SSLError("x"), "does not speak TLS; write http:// if the server has no certificate"),
        (OSError("odd"), "the connection failed (OSError('odd')); is a semsearch server there?"),
    ],
)
def test_a_request_without_an_answer_says_why(error: Exception, reason: str) -> None:
    assert server_with()._why(error).startswith(reason)
    invalid = ssl.SSLCertVerificationError()
    invalid.verify_message = "self-signed certificate"
    assert server_with()._why(invalid) == "its certificate is not valid (self-signed certificate); check the address"


NONE_OF_OURS = "this is no semsearch server; check the address and its path"


@pytest.mark.parametrize(
    ("status", "headers", "content", "message"),
    [
        (299, {}, b"", f"299; {NONE_OF_OURS}"),
        (300, {}, b"", "300; it redirects to another address; use that address"),
        (399, {"location": f"x{'y' * 199}z"}, b"", f"399; it redirects to x{'y' * 199}; use that address"),
        (400, {}, b'{"message": "odd"}', f"400 (odd); {NONE_OF_OURS}"),
        (401, {}, b"{", "401; pass one of the server's API keys as `key`, or the `region` of a function that IAM"),
        (404, {}, b'{"detail": "no"}', f"404; {NONE_OF_OURS}"),
        (500, {}, b'{"error_type": "internal"}', "500; look at the server's log"),
        (500, {}, b'{"error": "%s"}' % (b"x" * 201), f"500 ({'x' * 200}); {NONE_OF_OURS}"),
    ],
)
def test_a_reply_that_is_no_answer_says_what_to_do(
    status: int, headers: Mapping[str, str], content: bytes, message: str
) -> None:
    with pytest.raises(ServerError) as raised:
        server_with()._refuse(_Reply(status, headers, content), "GET /info")
    assert str(raised.value).startswith(f"{URL}: answered GET /info with {message}")
    assert raised.value.status == status


@pytest.mark.parametrize(("status", "kind"), [(404, "ValueError"), (413, "_TooLargeError"), (422, "ValueError")])
def test_a_reply_about_an_argument_is_a_value_error_with_its_name(status: int, kind: str) -> None:
    with pytest.raises(ValueError, match=r"^top_k: found 0$") as raised:
        server_with()._refuse(_Reply(status, {}, b'{"error": "num_results: found 0"}'), "POST /similar")
    assert type(raised.value).__name__ == kind


def test_a_pause_is_that_of_the_server_or_doubles() -> None:
    assert [_pause("7", 3), _pause("", 1), _pause("Sun, 29 Nov 2026 10:00:00 GMT", 2), _pause("²", 3)] == [
        7,
        0.25,
        0.5,
        1,
    ]


def test_a_text_is_asked_for_by_its_encoded_id_and_a_base_path() -> None:
    asked: list[tuple[str, str | None, str | None]] = []

    class Server(Handler):
        def answer(self) -> None:
            asked.append((self.path, self.headers["authorization"], self.headers["content-type"]))
            if "%2F" in self.path:
                self.reply(404, {}, b'{"error": "id: found no text with it"}')
            else:
                self.reply(200, {}, b'{"metadata": {}}')

    with listening(Server) as address:
        server = RemoteServer(f"{address}/base/", "key", None, 5)
        assert server.get("a b#1", 0, 0) == server.get("c", 2, 0) == server.get("c", 0, 1) == {"metadata": {}}
        assert server.get("a/b", 0, 0) is None
        server.close()
    assert asked == [
        (path, "Bearer key", "application/json")
        for path in (
            "/base/passages/a%20b%231",
            "/base/passages/c?after=0&before=2",
            "/base/passages/c?after=1&before=0",
            "/base/passages/a%2Fb",
        )
    ]


@pytest.mark.parametrize(
    ("proxy", "place", "headers"),
    [
        ("proxy.example.com", ("proxy.example.com", 80), {}),
        ("http://proxy.example.com:3128", ("proxy.example.com", 3128), {}),
        ("http://me:%40@proxy.example.com", ("proxy.example.com", 80), {"proxy-authorization": "Basic bWU6QA=="}),
        ("http://me@proxy.example.com", ("proxy.example.com", 80), {"proxy-authorization": "Basic bWU6"}),
        ("", ("search.example.com", 8443), None),
    ],
)
def test_a_connection_goes_to_the_proxy_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, proxy: str, place: tuple[str, int], headers: dict[str, str] | None
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setenv("http_proxy", "http://other.example.com")
    monkeypatch.setenv("no_proxy", "direct.example.com")
    connection: Any = EndpointBehindProxy(URL, 1)._make()
    assert (connection.host, connection.port) == place
    if headers is None:
        assert connection._tunnel_host is None
    else:
        assert (connection._tunnel_host, connection._tunnel_port) == ("search.example.com", 8443)
        assert headers.items() <= connection._tunnel_headers.items()
        assert ("proxy-authorization" in connection._tunnel_headers) == bool(headers)
    for direct in ("https://direct.example.com", "https://localhost", "https://[::1]:8"):
        assert EndpointBehindProxy(direct, 1)._make().host in direct


@pytest.mark.parametrize(
    ("host", "service"), [("x.lambda-url.eu-central-1.on.aws", "lambda"), ("x.com", "execute-api")]
)
def test_a_request_is_signed_for_the_service_of_its_host(
    monkeypatch: pytest.MonkeyPatch, host: str, service: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    headers = RemoteServer(f"https://{host}", None, "eu-central-1", 1)._headers("GET", "/info", b"")
    assert f"/eu-central-1/{service}/aws4_request, SignedHeaders=content-type;host;" in headers["authorization"]
