"""Callers that hang up, and a server that stops, told to the app as granian tells it."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semsearch.server.asgi import ServerApp

BODY: Message = {"type": "http.request", "body": b"{}", "more_body": False}
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

    async def receive(self) -> Message:
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
        await send(message)


async def test_the_body_is_the_apps_until_it_is_whole() -> None:
    parts: list[Message] = [{"type": "http.request", "body": b"x", "more_body": True} for _ in range(5)]
    received = []

    async def reads_slowly(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            for _ in range(5):
                await asyncio.sleep(0)
            received.append(await receive())
            if not received[-1]["more_body"]:
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


async def test_the_polls_start_and_stop_with_the_worker() -> None:
    seen: list[object] = []
    server = Server([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    reloader: Any = SimpleNamespace(poll_forever=lambda: seen.append("start"), stop=lambda: seen.append("stop"))
    app = ServerApp(answers, server, reloader)  # type: ignore[arg-type]
    await app({"type": "lifespan"}, server.receive, server.send)
    assert seen == ["start", "stop"]
    assert [message["type"] for message in server.sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
