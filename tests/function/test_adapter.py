"""From events to the app and back, with the least that an event loop must do."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from unittest.mock import Mock

import pytest
from mangum.handlers import HTTPGateway
from mangum.types import ASGI
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from function.events import make_handler
from tests.function.event_makers import http_api


@pytest.fixture(autouse=True)
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        yield loop
        asyncio.set_event_loop(None)


def ask(app: ASGI) -> dict[str, Any]:
    context: Any = None
    return make_handler(app, "/")(http_api("GET", "/health", None), context)


async def answer_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("at once")(scope, receive, send)


async def answer_after_waiting(scope: Scope, receive: Receive, send: Send) -> None:
    waited = await asyncio.gather(asyncio.sleep(0.001, "after"), asyncio.to_thread(lambda: "waiting"))
    await PlainTextResponse(" ".join(waited))(scope, receive, send)


async def answer_in_parts(scope: Scope, receive: Receive, send: Send) -> None:
    await StreamingResponse(iter(["in ", "parts"]), media_type="text/plain")(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "text"),
    [(answer_at_once, "at once"), (answer_after_waiting, "after waiting"), (answer_in_parts, "in parts")],
)
def test_an_app_is_answered_for_whether_it_waits_or_not(app: ASGI, text: str) -> None:
    reply = ask(app)
    assert (reply["statusCode"], reply["body"]) == (200, text)


def test_an_app_that_does_not_wait_costs_one_round_of_the_event_loop(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Mock(wraps=loop._run_once)  # type: ignore[attr-defined]
    monkeypatch.setattr(loop, "_run_once", rounds)
    ask(answer_at_once)
    assert rounds.call_count == 1


def test_the_scope_of_an_http_api_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(side_effect=HTTPGateway.scope.fget)  # type: ignore[attr-defined]
    monkeypatch.setattr(HTTPGateway, "scope", property(lambda request: made(request)))
    ask(answer_at_once)
    assert made.call_count == 1
