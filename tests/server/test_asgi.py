"""Callers that hang up, and a server that stops, told to the app as granian tells it."""

import asyncio
import logging
import signal
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semsearch.server import asgi
from semsearch.server.asgi import STOPPING, ServerApp

BODY: Message = {"type": "http.request", "body": b"{}"}
SCOPE: Scope = {"type": "http", "path": "/predict"}
REPLY: tuple[Message, ...] = (
    {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]},
    {"type": "http.response.body", "body": b"done"},
)


class Server:
    """Sends the app the messages, then nothing until the caller hangs up."""

    def __init__(self, messages: Iterable[Message] = (BODY,)) -> None:
        self.messages = list(messages)
        self.has_left = asyncio.Event()
        self.sent: list[Message] = []
        self.left = 0
        self.receiving = 0

    async def receive(self) -> Message:
        self.receiving += 1
        if self.messages:
            return self.messages.pop(0)
        await self.has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def count_left(self) -> None:
        self.left += 1

    def watched(self, app: ASGIApp) -> ServerApp:
        return ServerApp(app, self, patience=0.0)  # type: ignore[arg-type]


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    for message in REPLY:
        await send({**message})


async def test_the_body_is_the_apps_until_it_is_whole() -> None:
    parts: list[Message] = [{"type": "http.request", "body": b"x", "more_body": True} for _ in range(5)]
    received = []

    async def reads_slowly(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            for _ in range(5):
                await asyncio.sleep(0)
            received.append(await receive())
            if not received[-1].get("more_body"):
                break
        for message in REPLY:
            await send(message)

    server = Server([*parts, BODY])
    await server.watched(reads_slowly)(SCOPE, server.receive, server.send)
    assert server.left == 0
    assert received == [*parts, BODY]


async def test_a_request_that_was_answered_is_not_cancelled() -> None:
    finished: list[bool] = []
    server = Server()

    async def lingers(scope: Scope, receive: Receive, send: Send) -> None:
        await answers(scope, receive, send)
        server.has_left.set()  # as servers say once a reply is whole
        for _ in range(10):
            await asyncio.sleep(0)
        finished.append(True)

    await server.watched(lingers)(SCOPE, server.receive, server.send)
    assert (server.left, finished) == (0, [True])


async def test_a_request_whose_caller_hangs_up_is_cancelled_and_counted() -> None:
    server = Server()

    async def begins_a_reply(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({**REPLY[0]})
        await send({"type": "http.response.body", "body": b"do", "more_body": True})
        server.has_left.set()
        await asyncio.Event().wait()

    await server.watched(begins_a_reply)(SCOPE, server.receive, server.send)
    task = asyncio.current_task()
    assert task is not None
    assert (server.left, task.cancelling()) == (1, 0)


async def test_a_request_that_the_server_cancels_ends_with_that() -> None:
    server, has_begun = Server(), asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(server.watched(waits)(SCOPE, server.receive, server.send))
    await has_begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert server.left == 0


@pytest.mark.parametrize("turns", [0, 5])
async def test_after_a_request_nothing_watches_for_its_caller(turns: int) -> None:
    server, others = Server(), asyncio.all_tasks()

    async def answers_in_a_while(scope: Scope, receive: Receive, send: Send) -> None:
        await answers(scope, receive, send)
        for _ in range(turns):
            await asyncio.sleep(0)

    await server.watched(answers_in_a_while)(SCOPE, server.receive, server.send)
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.receiving == 1 + bool(turns)
    assert asyncio.all_tasks() == others


async def test_a_request_without_a_reply_is_not_counted() -> None:
    server = Server()  # it cannot count requests

    async def says_nothing(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    await server.watched(says_nothing)({**SCOPE, "stopwatch": None}, server.receive, server.send)
    assert server.sent == []


async def test_a_connection_is_not_silent_while_its_request_is_answered() -> None:
    server = Server()
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append("answer")
        raise ZeroDivisionError

    watched = server.watched(app)
    connections: Any = SimpleNamespace(begin=seen.append, end=seen.append)
    watched._connections = connections
    with pytest.raises(ZeroDivisionError):
        await watched({**SCOPE, "client": ("::1", "49822")}, server.receive, server.send)
    assert seen == [("::1", 49822), "answer", ("::1", 49822)]


async def test_a_worker_polls_watches_and_heeds_signals_until_it_stops() -> None:
    seen: list[str] = []
    server = Server([{"type": "lifespan.startup"}])

    def note(what: str) -> Any:
        return lambda: seen.append(what)

    async def watch() -> None:
        seen.append("watch")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("watched")

    reloader: Any = SimpleNamespace(poll_forever=note("start"), poll_now=note("poll"), stop=note("stop"))
    keys: Any = SimpleNamespace(read_again=note("keys"))
    app = ServerApp(answers, server, reloader, keys)  # type: ignore[arg-type]
    app._connections = SimpleNamespace(watch=watch, begin=lambda peer: None, end=lambda peer: None)  # type: ignore[assignment]
    worker = asyncio.create_task(app({"type": "lifespan"}, server.receive, server.send))
    while "watch" not in seen:
        await asyncio.sleep(0)
    request = {**SCOPE, "client": ("::1", "49822")}
    for number in (signal.SIGHUP, STOPPING):
        await app(request, Server().receive, server.send)
        signal.raise_signal(number)
        await asyncio.sleep(0.01)  # the event loop reads signals from a pipe
    await app(request, Server().receive, server.send)
    server.has_left.set()
    await worker
    await asyncio.sleep(0)
    assert seen == ["start", "watch", "poll", "keys", "stop", "watched"]
    headers = [message["headers"] for message in server.sent if message["type"] == "http.response.start"]
    assert headers == [[(b"a", b"b")], [(b"a", b"b")], [(b"a", b"b"), (b"connection", b"close")]]
    ends = [message for message in server.sent if message["type"].startswith("lifespan")]
    assert ends == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


async def test_a_worker_without_polls_and_keys_only_follows_the_lifespan() -> None:
    server = Server([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    app = server.watched(answers)
    app.look_again()
    await app({"type": "lifespan"}, server.receive, server.send)
    assert [message["type"] for message in server.sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_failed_update_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    app = ServerApp(answers, Server(), log=logging.getLogger("tests"))  # type: ignore[arg-type]
    app.log_failed_update("a.md: Permission denied")
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "index update failed")
    assert record.__dict__["error"] == "a.md: Permission denied"


def test_each_worker_follows_the_one_that_had_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    metrics: Any = SimpleNamespace(begin=seen.append, set_bundle=seen.append, set_connections="set")
    reloader: Any = SimpleNamespace(follow=seen.append, status="status")
    keys: Any = SimpleNamespace(follow=seen.append)
    log: Any = "log"
    app = ServerApp(answers, metrics, reloader, keys, log, workers=2)
    for worker in (0, 1):
        app.begin(worker)
    first, second = seen[:4], seen[4:]
    assert (first[0], second[0], first[3], second[3]) == (0, 1, "status", "status")
    left = {id(each) for each in [*first[1:3], *second[1:3]]}
    assert len(left) == 4
    seen.clear()
    app.begin(0)
    assert seen == first
    watched: list[object] = []

    def connections(*arguments: object) -> str:
        watched.append(arguments)
        return "connections"

    monkeypatch.setattr(asgi, "Connections", connections)
    app.watch_connections(8000, 3)
    assert watched == [(8000, 3, "log", "set")]
    assert str(app._connections) == "connections"
