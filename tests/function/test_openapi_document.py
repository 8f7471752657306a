"""The OpenAPI document tells the truth: schemathesis sends every route what it allows and what it does not.

All its checks are on: no 5xx, only documented statuses, content types and bodies, valid requests accepted and invalid
ones refused, 405 with Allow for other methods, and so on. The app is asked in process and through Lambda's events.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineFinished, FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.run import PhaseName
from starlette.types import Receive, Scope, Send

from function.engine.filters import OPERATORS
from function.events import make_handler
from tests.conftest import STORY_COLUMNS
from tests.function.event_makers import http_api

OPERATIONS = {
    *("POST /similar", "POST /predict", "GET /health", "HEAD /health", "GET /info", "HEAD /info"),
    *("POST /v1/embeddings", "GET /v1/models", "HEAD /v1/models", "GET /v1/models/{name}", "HEAD /v1/models/{name}"),
    *("POST /embed", "POST /similarity", "POST /", "POST /tokenize", "POST /mcp"),
}
CONFIG = {
    "cache": {"enabled": False},  # it would write into the working folder
    "generation": {"max-examples": 15, "deterministic": True, "database": "none"},
}


class ThroughEvents:
    """An ASGI app that asks another through Lambda: request to event, the handler in a thread of its own, and back."""

    def __init__(self, app: FastAPI) -> None:
        self._thread = ThreadPoolExecutor(1, initializer=lambda: asyncio.set_event_loop(asyncio.new_event_loop()))
        self._handler = self._thread.submit(make_handler, app, "/").result()  # Mangum takes the loop of its thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body, is_whole = b"", False
        while not is_whole:
            message = await receive()
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
        reply = await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, scope, body)
        headers = [(name.encode(), value.encode()) for name, value in reply["headers"].items()]
        await send({"type": "http.response.start", "status": reply["statusCode"], "headers": headers})
        await send({"type": "http.response.body", "body": reply["body"].encode()})

    def _ask(self, scope: Scope, body: bytes) -> dict[str, Any]:
        event = http_api(scope["method"], scope["path"], base64.b64encode(body).decode()) | {"isBase64Encoded": True}
        event["headers"] = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        event["rawQueryString"] = scope["query_string"].decode("latin-1")
        context: Any = SimpleNamespace(aws_request_id=None)
        return self._handler(event, context)

    def close(self) -> None:
        self._thread.submit(lambda: asyncio.get_event_loop().close()).result()
        self._thread.shutdown()


@pytest.fixture
def through_events(make_app: Callable[..., FastAPI]) -> Iterator[ThroughEvents]:
    app = ThroughEvents(make_app())
    yield app
    app.close()


def check_conformance(app: object) -> None:
    """Run schemathesis over all routes of an app; fail with everything that it found."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=SchemathesisConfig.from_dict(CONFIG))
    found: list[str] = []
    asked: dict[PhaseName, set[str | None]] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, ScenarioFinished):
            if event.recorder.cases:
                asked.setdefault(event.phase, set()).add(event.label)
            for checks in event.recorder.checks.values():
                failures = [check.failure_info for check in checks if check.failure_info is not None]
                found += [f"{event.label}: {failure.failure}\n{failure.code_sample}" for failure in failures]
        elif isinstance(event, NonFatalError | FatalError):
            found.append(str(event))
        elif isinstance(event, EngineFinished):
            found += [str(failure) for failure in event.failures]
    assert not found, "\n\n".join(found)
    assert asked[PhaseName.COVERAGE] == asked[PhaseName.FUZZING] == OPERATIONS


def test_the_app_answers_as_its_document_says(make_app: Callable[..., FastAPI]) -> None:
    check_conformance(make_app())


def test_lambda_answers_as_the_document_says(through_events: ThroughEvents) -> None:
    check_conformance(through_events)


def test_the_document_says_that_a_text_must_not_be_blank(make_app: Callable[..., FastAPI]) -> None:
    schemas = make_app().openapi()["components"]["schemas"]
    one, several = schemas["PredictRequest"]["properties"]["text"]["oneOf"]
    for text in (schemas["SimilarRequest"]["properties"]["text"], one, several["items"]):
        assert (text["type"], text["minLength"], text["pattern"]) == ("string", 1, r"[^\s\x1c-\x1f\x85]")
    assert (several["minItems"], several["maxItems"]) == (1, 2048)


def test_the_document_says_which_columns_a_filter_may_name_and_what_a_result_may_leave_out(
    make_app: Callable[..., FastAPI],
) -> None:
    schemas = make_app().openapi()["components"]["schemas"]
    assert schemas["Filter"]["properties"].keys() == STORY_COLUMNS.keys() | {"$and", "$or"}
    assert schemas["Filter"]["properties"]["chapter"]["anyOf"][0] == {"type": "number"}
    assert schemas["NumberOperators"]["properties"].keys() == set(OPERATORS)
    assert schemas["SimilarRequest"]["properties"]["filter"]["anyOf"][0] == {"$ref": "#/components/schemas/Filter"}
    always = set(schemas["Result"]["required"])
    assert schemas["Result"]["properties"].keys() - always == {"scores", "text", "metadata"}
