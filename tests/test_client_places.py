"""The places of a Search, and what a server there can answer."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semsearch import Search
from semsearch.client import ServerError
from semsearch.client.search import address_of
from tests.stand_ins.http import Handler, listening

KEY = "0123456789abcdef"


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("localhost", "http://localhost"),
        ("127.0.0.1:8000/search", "http://127.0.0.1:8000/search"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("localhost.example.com:8443", "https://localhost.example.com:8443"),
        ("search.example.com:443", "https://search.example.com:443"),
        ("https://search.example.com", "https://search.example.com"),
        ("search.example.com", None),
        ("bundle/", None),
        ("~/bundle", None),
        (Path("localhost"), None),
    ],
)
def test_a_place_is_a_folder_or_an_address(place: str | Path, url: str | None) -> None:
    assert address_of(place) == url


def test_a_place_that_is_neither_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError, match="place: found ftp://, expected a folder, http://, https:// or s3://"):
        Search("ftp://example.com")
    with pytest.raises(ValueError, match="found a user or a password") as raised:
        Search(f"https://me:{KEY}@example.com")
    assert KEY not in str(raised.value)


def test_a_folder_can_be_named_from_the_home_folder(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bundle.parent))
    assert Search(f"~/{bundle.name}").search("goose") == Search(bundle).search("goose")


Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(answers: list[Reply]) -> Iterator[tuple[str, list[int]]]:
    """Serve these answers in turn, and yield the address and the ports from which requests came."""
    ports: list[int] = []

    class Answer(Handler):
        def answer(self) -> None:
            ports.append(self.client_address[1])
            self.body()
            self.reply(*answers.pop(0))

    with listening(Answer) as address:
        yield address, ports


NOTHING_FOUND: Reply = (200, {}, b'{"results":[],"truncated":false}')
AT_ONCE = {"retry-after": "0"}


def test_a_busy_server_is_asked_four_times_over_one_connection() -> None:
    busy = [(503, AT_ONCE, b"{}"), (429, AT_ONCE, b""), (503, AT_ONCE, b"")]
    with answering([*busy, NOTHING_FOUND, NOTHING_FOUND]) as (address, ports), Search(address) as search:
        assert search.search("goose") == search.search("goose") == []
    assert (len(ports), len({*ports})) == (5, 1)
    full: Reply = (429, {}, b'{"error":"full","error_type":"overloaded"}')
    message = r"429 \(full\); it is busy; ask again"
    with answering([*busy, full]) as (address, ports), pytest.raises(ServerError, match=message) as raised:
        Search(address).search("goose")
    assert (raised.value.status, len(ports)) == (429, 4)


def test_a_server_that_wants_a_pause_of_more_than_30_seconds_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("semsearch.client.server.sleep", pauses.append)
    answers = [(503, {"retry-after": "30"}, b""), (503, {"retry-after": "31"}, b"")]
    with answering(answers) as (address, ports), pytest.raises(ServerError, match="503"):
        Search(address).search("goose")
    assert (len(ports), pauses) == (2, [30])


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    closing = (200, {"connection": "close"}, NOTHING_FOUND[2])
    with answering([closing, NOTHING_FOUND]) as (address, ports), Search(address) as search:
        assert search.search("goose") == search.search("goose") == []
    assert len({*ports}) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {}, b"<html>"), "answered POST /similar with 200; this is no semsearch server"),
        ((200, {}, b"[1]"), "this is no semsearch server"),
        ((404, {}, b'{"detail":"Not Found"}'), "with 404; this is no semsearch server"),
        ((403, {}, b'{"Message":"Forbidden"}'), r"with 403 \(Forbidden\); pass .* `key`, or the `region`"),
        ((308, {"location": "https://example.com/"}, b""), "it redirects to https://example.com/; use that address"),
        ((500, {}, b'{"error":"boom","error_type":"internal"}'), r"with 500 \(boom\); look at the server's log"),
        ((502, {}, b"<html>Bad Gateway"), "with 502; this is no semsearch server"),
    ],
)
def test_the_error_of_a_server_says_what_to_do(answer: Reply, message: str) -> None:
    with answering([answer]) as (address, _), Search(address) as search, pytest.raises(ServerError, match=message):
        search.search("goose")


def test_a_server_that_does_not_answer_is_an_error_with_advice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ServerError, match=r"no answer within 0\.05 seconds; pass a larger `timeout`"):
            Search(f"localhost:{port}", timeout=0.05).search("goose")
    with pytest.raises(ServerError, match="nothing answers there; start a server with `semsearch serve BUNDLE`"):
        Search(f"localhost:{port}").search("goose")
    assert repr(Search(f"localhost:{port}")) == f"Search('localhost:{port}')"


def test_importing_search_imports_neither_the_engine_s_model_nor_an_http_client() -> None:
    code = "import sys; from semsearch import Search; Search('localhost:1'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"onnxruntime", "tokenizers", "pydantic", "pandas", "polars", "cyclopts", "rich", "asyncio", "fastapi"}
    assert heavy & {*modules} == set()


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None]] = []

    class Proxy(Handler):
        def answer(self) -> None:
            asked.append((self.path, self.headers["proxy-authorization"]))
            self.send_error(403)

    with listening(Proxy) as address:
        monkeypatch.setenv("https_proxy", address.replace("//", "//me:word@"))
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(ServerError, match="403"):
            Search("search.example.com:8443").search("goose")
    assert asked == [("search.example.com:8443", "Basic bWU6d29yZA==")]
