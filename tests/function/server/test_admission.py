"""A full queue, over the server's own app: who is refused, when, and how long a refusal waits."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import Message

from function.app import App
from function.engine.embedder import Embedder
from function.engine.quantization import Embeddings
from function.errors import MESSAGE_FIELDS
from function.server import admission, batching
from function.server import disconnect as callers
from function.server.admission import MODEL_PATHS
from function.server.disconnect import CancelOnDisconnect
from function.server.uvicorn_server import Batching, make_app
from function.settings import Settings
from tests.function.server.test_metrics import counted

KEY = "0123456789abcdef"
FIELDS = {"/v1/embeddings": "input", "/embed": "inputs", "/": "inputs"}


def body_for(path: str, text: str = "an angry goose") -> dict[str, Any]:
    """Return a body that the route of a path accepts."""
    if path == "/similarity":
        return {"inputs": {"source_sentence": text, "sentences": [text]}}
    if path.endswith("/rerank"):
        return {"query": text, "texts" if path == "/rerank" else "documents": [text]}
    return {FIELDS.get(path, "text"): text}


class Waits:
    """Stands where the delays sleep: notes their seconds, and ends when it is told to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.ended = 0
        self.end = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.end.wait()
        self.ended += 1


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    monkeypatch.setattr(admission, "sleep", waits.sleep)
    return waits


class Gate(threading.Event):
    """What the model waits for."""

    begun = 0  # batches


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate, embed_batch = Gate(), Embedder.embed_batch

    def wait(self: Embedder, ids: list[list[int]]) -> Embeddings:
        gate.begun += 1
        assert gate.wait(timeout=30)
        return embed_batch(self, ids)

    monkeypatch.setattr(Embedder, "embed_batch", wait)
    yield gate
    gate.set()


Full = Callable[..., AbstractAsyncContextManager[tuple[CancelOnDisconnect, httpx.AsyncClient]]]


@pytest.fixture
def full(bundle: Path, gate: Gate) -> Full:
    """Return what makes an app whose queue is full, and a client of it. At the end, what waits is answered."""

    @asynccontextmanager
    async def make(
        settings: Settings | None = None, max_queued_tokens: int = 1
    ) -> AsyncIterator[tuple[CancelOnDisconnect, httpx.AsyncClient]]:
        gate.set()  # to load the bundle, and for one request
        app = make_app(settings or Settings(bundle_dir=bundle), Batching(1, max_queued_tokens))
        keys = {"authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t", headers=keys) as client:
            assert (await client.post("/predict", json={"text": "goose"})).status_code == 200
            gate.clear()
            begun = gate.begun
            accepted = [asyncio.create_task(client.post("/predict", json={"text": "goose"}))]
            await eventually(lambda: gate.begun > begun)
            accepted.append(asyncio.create_task(client.post("/predict", json={"text": "goose"})))
            while not await metric(client, "queued_tokens"):
                await asyncio.sleep(0.001)
            yield app, client
            gate.set()
            assert [(await one).status_code for one in accepted] == [200, 200]

    return make


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.001)


async def metric(client: httpx.AsyncClient, *name: str) -> float:
    """Return a count of the server."""
    return counted((await client.get("/metrics")).text)[name]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LONGEST_WAIT", 0.0)


async def asked(app: CancelOnDisconnect, path: str, *messages: Message) -> tuple[int, Headers, bytes]:
    """Return the status, the headers and the body of a reply to a request that comes in these messages."""
    coming, sent = [*messages], []

    async def receive() -> Message:
        return coming.pop(0) if coming else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        sent.append(message)

    length = sum(len(message["body"]) for message in messages)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
    await app({"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}, receive, send)
    assert not coming
    return sent[0]["status"], Headers(raw=sent[0]["headers"]), sent[1]["body"]


def part(body: bytes, is_last: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": not is_last}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("path", MODEL_PATHS)
async def test_a_full_queue_refuses_before_it_parses_or_tokenizes(
    full: Full, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "queue: 3 tokens wait for the model, the limit is 1; try again in 1 s"
    expected: object = {"error": message, "error_type": "overloaded"}
    if path in MESSAGE_FIELDS:
        expected = {MESSAGE_FIELDS[path]: message}
    elif path.startswith("/v1/"):
        openai = {"message": message, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
        expected = {"error": openai}
    async with full() as (app, _):
        monkeypatch.setattr(Embedder, "tokenize", lambda *_: pytest.fail("it tokenizes"))
        found = [await asked(app, path, part(body)) for body in (json.dumps(body_for(path)).encode(), b"{")]
    for status, headers, body in found:
        assert (status, headers["retry-after"], json.loads(body)) == (429, "1", expected)
        assert headers["x-request-id"]


def test_every_route_that_runs_a_model_on_its_body_is_checked(bundle: Path) -> None:
    app = make_app(Settings(bundle_dir=bundle), Batching(1, 1)).app
    assert isinstance(app, App)
    with_body = {
        route.path for route in app.fastapi.routes if isinstance(route, Route) and "POST" in (route.methods or ())
    }
    # /tokenize needs no model; only some messages to /mcp do, and `embed` refuses those
    assert with_body - {"/tokenize", "/mcp"} == set(MODEL_PATHS)


@pytest.mark.usefixtures("at_once")
async def test_what_needs_no_model_is_answered_while_the_queue_is_full(full: Full) -> None:
    async with full() as (_, client):
        replies = [
            await client.post("/similar", json={"text": "goose", "mode": "keyword"}),
            await client.post("/tokenize", json={"inputs": "goose"}),
            await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            await client.get("/health"),
            await client.get("/"),
            await client.get("/info"),
        ]
        assert [reply.status_code for reply in replies] == [200] * 6


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_refusal_after_the_body_was_parsed_waits_too(full: Full, waits: Waits, is_whole: bool) -> None:
    body = b'{"text": "keyword"}'  # it could be a search that needs no model

    async def in_parts() -> AsyncIterator[bytes]:
        yield body[:10]
        yield body[10:]

    async with full() as (_, client):
        headers = {"content-type": "application/json"}
        content = body if is_whole else in_parts()
        asking = asyncio.create_task(client.post("/similar", content=content, headers=headers))
        await eventually(lambda: len(waits.seconds) == 1)
        waits.end.set()
        reply = await asking
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
    assert "parse" in reply.headers["server-timing"]


@pytest.mark.usefixtures("at_once")
async def test_an_unknown_key_and_a_refusal_by_the_server_are_what_they_are(full: Full, bundle: Path) -> None:
    async with full(Settings(bundle_dir=bundle, api_keys=(KEY,))) as (_, client):
        body = {"text": "goose"}
        stranger = await client.post("/predict", json=body, headers={"authorization": "Bearer none"})
        assert [stranger.status_code, (await client.post("/predict", json=body)).status_code] == [401, 429]


async def test_a_refusal_waits_for_its_retry_after_and_the_caller_gets_it_then(full: Full, waits: Waits) -> None:
    async with full() as (_, client):
        asking = asyncio.create_task(client.post("/predict", json={"text": "goose"}))
        await eventually(lambda: bool(waits.seconds))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        waits.end.set()
        reply = await asking
    assert (reply.status_code, waits.seconds) == (429, [1])


async def test_no_refusal_waits_longer_than_clients_do(
    full: Full, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(0.0, 7.0)  # seconds that each batch takes; one of three tokens waits
    monkeypatch.setattr(batching, "monotonic", lambda: next(clock))
    async with full() as (_, client):
        waits.end.set()
        reply = await client.post("/predict", json={"text": "goose"})
    assert (reply.headers["retry-after"], waits.seconds) == ("7", [admission.LONGEST_WAIT])


async def test_beyond_their_limit_refusals_do_not_wait(
    full: Full, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_WAITING", 2)
    async with full() as (_, client):
        asking = [asyncio.create_task(client.post("/predict", json={"text": "goose"})) for _ in range(5)]
        await eventually(lambda: sum(one.done() for one in asking) == 3)
        assert len(waits.seconds) == 2
        waits.end.set()
        assert {(await one).status_code for one in asking} == {429}
        await client.post("/predict", json={"text": "goose"})
        assert len(waits.seconds) == 3  # their places are free again


async def test_a_caller_that_hangs_up_while_its_refusal_waits_frees_the_place(
    full: Full, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over real sockets: the server notices the end of the connection."""
    monkeypatch.setattr(callers, "PATIENCE", 0.001)
    monkeypatch.setattr(admission, "MOST_WAITING", 1)
    head = "POST /predict HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n"
    request = (head + '{"text": "goose"}').encode()
    async with full() as (app, client), listening(app) as port:
        _, leaving = await asyncio.open_connection("127.0.0.1", port)
        leaving.write(request)
        await eventually(lambda: len(waits.seconds) == 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)  # there is no place, so it is answered at once
        assert (await reader.readline()).startswith(b"HTTP/1.1 429")
        leaving.close()
        await leaving.wait_closed()
        while not await metric(client, "callers_left_total"):
            await asyncio.sleep(0.001)
        _, last = await asyncio.open_connection("127.0.0.1", port)
        last.write(request)
        await eventually(lambda: len(waits.seconds) == 2)
        assert waits.ended == 0
        waits.end.set()
        writer.close()
        last.close()


@asynccontextmanager
async def listening(app: CancelOnDisconnect) -> AsyncIterator[int]:
    """Serve an app in this event loop, without signals; yield the port."""
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        await server.shutdown()


async def test_a_refusal_that_waits_is_sent_and_closes_its_connection_when_the_server_stops(
    full: Full, waits: Waits
) -> None:
    async with full() as (app, client):
        asking = asyncio.create_task(client.post("/predict", json={"text": "goose"}))
        await eventually(lambda: bool(waits.seconds))
        app.is_stopping = True
        waits.end.set()
        reply = await asking
    assert (reply.status_code, reply.headers["connection"]) == (429, "close")


@pytest.mark.usefixtures("at_once")
async def test_the_body_of_a_refused_request_is_read(full: Full) -> None:
    async with full() as (app, _):
        status, _, _ = await asked(app, "/predict", *[part(b" " * 60_000, False)] * 90, part(b"{}"))
        assert status == 429


@pytest.mark.usefixtures("at_once")
async def test_a_bulk_request_is_refused_before_it_is_read_while_another_one_is_read(
    full: Full, gate: threading.Event
) -> None:
    texts = json.dumps({"text": ["goose"] * 2_000}).encode()
    async with full(max_queued_tokens=1_000) as (app, client):
        rest, sent = asyncio.Event(), []

        async def receive() -> Message:
            if not rest.is_set():
                await rest.wait()
                return part(texts)
            return await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(texts))]
        scope = {"type": "http", "method": "POST", "path": "/predict", "query_string": b"", "headers": headers}
        first = asyncio.create_task(app(scope, receive, send))
        await asyncio.sleep(0)
        assert (await asked(app, "/predict", part(texts)))[0] == 429
        small = asyncio.create_task(client.post("/predict", json={"text": "goose"}))
        rest.set()
        await asyncio.sleep(0.01)
        gate.set()
        assert (await small).status_code == 200
        await first
        assert sent[0]["status"] == 200


@pytest.mark.usefixtures("at_once")
async def test_a_search_with_a_long_text_is_not_a_bulk_request(full: Full, gate: Gate) -> None:
    async with full(max_queued_tokens=500) as (_, client):
        bulk = [asyncio.create_task(client.post("/predict", json={"text": ["goose"] * 2_000}))]
        while await metric(client, "queued_tokens") < 1_000:
            await asyncio.sleep(0.001)
        long = {"text": "goose " * 1_500}
        search = asyncio.create_task(client.post("/similar", json=long))
        refused = await client.post("/predict", json={"text": ["goose"] * 1_000})
        gate.set()
        await asyncio.gather(*bulk)
        assert ((await search).status_code, refused.status_code) == (200, 429)


@pytest.mark.usefixtures("at_once")
async def test_each_refusal_is_a_line_of_the_log_and_counted(full: Full, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with full() as (_, client):
        for _ in range(3):
            await client.post("/predict", json={"text": "goose"})
        samples = counted((await client.get("/metrics")).text)
    assert samples["requests_total", "/predict", "429"] == 3
    assert samples["request_seconds_count", "/predict"] == 1  # the request before them, and not their wait
    lines: Sequence[Any] = [record for record in caplog.records if getattr(record, "status", 0) == 429]
    assert [(line.message, line.path) for line in lines] == [("request", "/predict")] * 3
