"""Around each request: Server-Timing for the caller, one line for the operator, and a crash told to both."""

import json
import logging
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.app import telemetry
from semsearch.app.cold_start import ColdStart
from semsearch.app.http import HttpError, Message, Receive, Reply, Scope, Send, replay
from semsearch.app.middleware import (
    MOST_BODY_VALUES,
    MOST_DISCARDED,
    RequestLimits,
    RequestLog,
    answer_head,
    discard_body,
    has_many_values,
)
from semsearch.app.settings import read_settings
from semsearch.engine.embedder import Embedder
from semsearch.indexing.questions import read_log
from tests.app_fixtures import BrokenEmbedder


@pytest.fixture(autouse=True)
def listening(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """Return the log from here on, without what `client` logged when it was made."""
    caplog.set_level(logging.INFO, logger="tests")
    caplog.clear()


def only_line(caplog: pytest.LogCaptureFixture) -> dict[str, object]:
    """Return the fields of the one line that the requests so far have logged."""
    (record,) = [record for record in caplog.records if record.name == "tests"]
    assert (record.levelname, record.message) == ("INFO", "request")
    return vars(record)


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(("sent", "expected"), [(TRACE, TRACE), (TRACE[:-1], None), (TRACE.upper(), None)])
def test_a_trace_is_logged_and_returned(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, sent: str, expected: str | None
) -> None:
    reply = client.get("/nothing", headers={"traceparent": sent})
    assert reply.headers.get("traceparent") == only_line(caplog).get("traceparent") == expected


def test_queries_are_logged_only_if_that_is_set(
    connect: Callable[..., httpx.Client], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    asked = {"text": "the night nurse", "num_results": 3}
    connect().post("/similar", json=asked)
    assert "night nurse" not in str([vars(record) for record in caplog.records])
    settings = read_settings({"LOG_QUERIES": "1"})
    caplog.clear()
    found = connect(settings=settings).post("/similar", json=asked).json()["results"]
    connect(settings=settings).post("/similar", json={"sort": {"chapter": "asc"}})
    (line,) = [vars(record) for record in caplog.records if record.message == "query"]
    assert (line["query"], line["results"], line["best_score"]) == ("the night nurse", 3, found[0]["score"])
    fields = {"level": "INFO", "message": "query", "query": line["query"], "results": 3}
    log = [json.dumps(fields), json.dumps(fields, separators=(",", ":")), '{"message":"request"}']
    (tmp_path / "log").write_text("\n".join(log), encoding="utf-8")
    assert read_log(tmp_path / "log") == {"the night nurse"}


JUST_A_TEXT = '{"text": "żółty ferry"}'.encode()
LONG = "/" + "a" * 60_000


@pytest.mark.parametrize(
    ("path", "content", "status", "phases"),
    [
        ("/similar", JUST_A_TEXT, 200, ["parse", "keyword", "embed", "search", "reply"]),
        ("/similar", b"{", 400, []),
        ("/nothing", b"abc", 404, []),
        (LONG, b"", 404, []),
        ("/similar", b" " * 7_000_000, 413, []),
    ],
    ids=["answered", "not JSON", "no route", "long path", "too large"],
)
def test_a_request_is_logged_in_one_short_line(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, path: str, content: bytes, status: int, phases: list[str]
) -> None:
    client.post(path, content=content, headers={"content-type": "application/json"})
    line = only_line(caplog)
    assert (line["method"], line["path"], line["status"]) == ("POST", path[:1_000], status)
    assert line["payload_bytes"] == len(content)
    assert isinstance(line["milliseconds"], float)
    assert isinstance(line["phases"], dict)
    assert list(line["phases"]) == phases
    assert 0 <= sum(line["phases"].values()) <= line["milliseconds"] + 0.01
    assert len(repr(line)) < 5_000


def test_without_lambda_each_request_id_is_32_other_hex_digits(client: httpx.Client) -> None:
    ids = {client.get("/health", headers={"x-request-id": "mine"}).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", request_id) for request_id in ids)


@pytest.mark.parametrize(
    ("path", "body"), [("/similar", {"text": "goose"}), ("/v1/embeddings", {"input": "goose", "model": "any"})]
)
def test_each_status_of_5xx_is_an_error_with_its_reason(
    connect: Callable[..., httpx.Client],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, str],
) -> None:
    """Whether a direct route or FastAPI answers, and whatever the form of the reply."""

    def refuse(*arguments: object) -> None:
        raise HttpError(503, "model: is resting; wait", reason="the model rests until noon")

    for module in ("texts", "predict"):
        monkeypatch.setattr(f"semsearch.app.routes.{module}.refuse_texts", refuse)
    assert connect().post(path, json=body).status_code == 503
    (line,) = [record for record in caplog.records if record.message == "request"]
    assert (line.levelname, vars(line)["error"]) == ("ERROR", "the model rests until noon")


@pytest.fixture
def broken_client(connect: Callable[..., httpx.Client], embedder: Embedder) -> httpx.Client:
    return connect(embedder=BrokenEmbedder(embedder))


def test_a_crash_is_a_500_that_tells_its_id_alone_and_is_logged_once_with_its_trace_under_it(
    broken_client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    reply = broken_client.post("/similar", json={"text": "goose"})
    request_id = reply.headers["x-request-id"]
    error = f"the request failed; its trace is in the log under the request id {request_id}"
    assert (reply.status_code, reply.json()) == (500, {"error": error, "error_type": "internal"})
    assert "total" in reply.headers["server-timing"]
    (failure,) = [record for record in caplog.records if record.exc_info]
    assert (failure.message, vars(failure)["request_id"]) == ("request failed", request_id)
    assert "the model is gone" in caplog.text
    assert "in tokenize" in caplog.text
    (line,) = [record for record in caplog.records if record.message == "request"]
    assert (line.levelname, vars(line)["status"], vars(line)["error"]) == ("ERROR", 500, error)
    assert broken_client.get("/health").status_code == 200


async def test_a_reply_that_breaks_off_is_logged_and_not_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"abc"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("the model is gone")

    log = RequestLog(app, logging.getLogger("tests"), ColdStart(lambda phases: None))
    with pytest.raises(RuntimeError, match="the model is gone"):
        await log({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    assert len(sent) == 1
    assert [record.message for record in caplog.records] == ["request failed"]


def test_milliseconds_are_logged_in_thousandths(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count(0, 1_234_567)
    monkeypatch.setattr(telemetry, "perf_counter_ns", lambda: next(ticks))
    client.post("/similar", json={"text": "goose"})
    line: dict[str, Any] = only_line(caplog)
    assert set(line["phases"].values()) == {1.235}
    assert line["milliseconds"] == 8.642  # five phases, the header Server-Timing and this line


@pytest.mark.parametrize(
    ("headers", "chunks", "status", "error", "reads"),
    [
        ([], [b"abc", b"def"], 200, "", 2),
        ([(b"content-length", b"6")], [b"abc", b"def"], 200, "", 2),
        ([], [b"abc", b"defg", b"h"], 413, "body: 7 bytes or more, at most 6; send fewer or shorter texts", 3),
        (
            [(b"content-length", b"7")],
            [b"abc"],
            413,
            "body: 7 bytes or more, at most 6; send fewer or shorter texts",
            1,
        ),
        ([(b"content-length", b"?")], [b"abc"], 200, "", 1),
        ([], [b"abc", None], 400, "body: broke off after 3 bytes, expected all of it; send it again", 2),
        ([(b"content-encoding", b"Identity")], [b"abc"], 200, "", 1),
        (
            [(b"content-encoding", b"gzip")],
            [b"abc", b"def"],
            415,
            "body: content-encoding 'gzip', expected none; send the body uncompressed",
            2,
        ),
    ],
)
async def test_a_body_is_read_as_far_as_the_limit_and_discarded_after_a_refusal(
    headers: list[tuple[bytes, bytes]], chunks: list[bytes | None], status: int, error: str, reads: int
) -> None:
    sent: list[Message] = []
    left = [*chunks]

    async def receive() -> Message:
        chunk = left.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk} | ({"more_body": True} if left else {})

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Reply(repr(await receive()).encode())(scope, receive, send)

    limits = RequestLimits(app, max_body_bytes=6)
    await limits({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
    start, end = sent
    assert (start["status"], len(chunks) - len(left)) == (status, reads)
    assert ((b"accept-encoding", b"identity") in start["headers"]) is (status == 415)
    if status == 200:
        whole = b"".join(chunk or b"" for chunk in chunks)
        assert end["body"].decode() == repr({"type": "http.request", "body": whole, "more_body": False})
    else:
        assert json.loads(end["body"])["error"] == error


async def test_what_is_left_of_a_body_is_read_up_to_a_limit() -> None:
    for length, expected in ((MOST_DISCARDED // 2, 2), (MOST_DISCARDED // 2 - 1, 3), (MOST_DISCARDED, 1)):
        read: list[Message] = []

        async def receive(read: list[Message] = read, length: int = length) -> Message:
            read.append({"type": "http.request", "body": range(length), "more_body": True})  # only its length is used
            return read[-1]

        await discard_body(receive)
        assert len(read) == expected


async def test_after_a_body_that_was_read_the_next_message_is_received() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    again = replay({"type": "http.request"}, receive)
    assert [(await again())["type"] for _ in range(3)] == ["http.request", *["http.disconnect"] * 2]


COMMAS = b"," * MOST_BODY_VALUES


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (COMMAS, False),
        (COMMAS + b",", True),
        (COMMAS + b"[", True),
        (COMMAS[1:] + b"{", False),
        (b'"' + COMMAS + b',"', False),
        (b'"[{,"' + COMMAS, False),
        (b'"[{,"' + COMMAS + b",", True),
        (b'","' * 2 * MOST_BODY_VALUES, True),  # too many strings to look at
        (b'","' * (2 * MOST_BODY_VALUES - 1), False),
        (b'["a\0' + COMMAS + b',"', True),
        (b'["ab\0' + COMMAS + b',"', False),
    ],
    ids=lambda value: "",
)
def test_values_of_a_body_are_counted_outside_of_its_strings(body: bytes, expected: bool) -> None:
    assert has_many_values(body) is expected


async def test_head_is_answered_with_the_length_of_the_body_that_get_has_and_without_it() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Reply(scope["method"].encode())(scope, receive, send)

    await answer_head(app)({"type": "http", "method": "HEAD", "path": "/", "headers": []}, receive, send)
    start, end = sent
    assert (b"content-length", b"3") in start["headers"]  # that of b"GET"
    assert end["body"] == b""
