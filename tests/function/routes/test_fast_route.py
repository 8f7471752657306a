"""The direct way to a route: what FastAPI's own way would answer, for whatever is sent, with less work."""

import asyncio
import json
from typing import Annotated, Any, Literal

import httpx
import pytest
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from function.errors import add_error_replies
from function.routes.fast_route import FastRoute, arguments
from function.routes.replies import json_reply
from tests.conftest import InProcess

JSON = {"content-type": "application/json"}


class Wanted(BaseModel):
    """A body with a field of each kind that the routes have."""

    model_config = ConfigDict(strict=True, extra="forbid")

    text: str | list[str]
    number: Annotated[int, Field(ge=1)] = 5
    kind: Literal["a", "b"] | None = None
    exact: bool = False
    filter: dict[str, Any] | None = None


def make_app(route_class: type | None) -> FastAPI:
    app = FastAPI()
    if route_class is not None:
        app.router.route_class = route_class
    add_error_replies(app)

    @app.post("/echo")
    async def echo(body: Wanted, request: Request) -> Response:
        if body.text == "refuse":
            raise HTTPException(418, "I refuse")
        return Response(f"{request.url.path} {body!r}")

    @app.get("/plain")
    async def plain() -> Response:
        return json_reply({"plain": True})

    @app.get("/query")
    async def query(number: Annotated[int, Query()] = 7) -> Response:
        return json_reply({"number": number})

    return app


DIRECT, FASTAPI = (
    httpx.Client(transport=InProcess(make_app(each)), base_url="http://tests") for each in (FastRoute, None)
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
bodies = st.fixed_dictionaries(
    {"text": st.text(max_size=5) | values},
    optional={
        "number": st.integers(0, 9) | values,
        "kind": st.sampled_from(["a", "b", "c"]),
        "exact": values,
        "filter": values,
    },
).map(lambda body: json.dumps(body).encode())


@given(content=bodies | st.binary(max_size=30))
@example(b"")
@example(b'\xef\xbb\xbf{"text": "a"}')
@example('{"text": "a"}'.encode("utf-16"))
@example(b'{"text": "a", "filter": {"b": NaN, "c": -Infinity, "d": 1e400, "e": -0.0}}')
@example(b'{"text": "a", "filter": {"b": %s}}' % (b"1" * 4000))
@example(b'{"text": "a", "filter": {"b": %s}}' % (b"1" * 5000))
@example(b'{"text": "a", "filter": {"b": "\\ud800"}}')
@example(b'{"text": "a", "filter": {"b": "\xed\xa0\x80"}}')
@example(b'{"text": "a", "filter": {"b": %s1%s}}' % (b"[" * 300, b"]" * 300))
@example(b'{"text": "a\tb"}')
@example(b'{"text": "a\x00b"}')
@example(b'{"text": "a",}')
@example(b' \r\n{"text": "a"}\n ')
@example(b'\x0c{"text": "a"}')
@example(b'{"text": "a"} {}')
@example(b'{"text": "a", "number": 2.0}')
@example(b'{"text": "a", "number": 01}')
@example(b'{"text": "refuse"}')
def test_any_body_is_answered_as_fastapi_answers_it(content: bytes) -> None:
    found, expected = (client.post("/echo", content=content, headers=JSON) for client in (DIRECT, FASTAPI))
    assert (found.status_code, found.text) == (expected.status_code, expected.text)


@pytest.mark.parametrize(
    "content_type",
    [
        *(None, "application/json; charset=utf-8", "APPLICATION/JSON", "application/ld+json", "application/jsonx"),
        *("application/json;", " application/json", "application/json, text/html", "text/plain;application/json"),
    ],
)
def test_any_content_type_is_taken_or_refused_as_by_fastapi(content_type: str | None) -> None:
    headers = {"content-type": content_type} if content_type else {}
    found, expected = (client.post("/echo", content=b'{"text": "a"}', headers=headers) for client in (DIRECT, FASTAPI))
    assert (found.status_code, found.text) == (expected.status_code, expected.text)


@pytest.mark.parametrize("path", ["/plain", "/query?number=x", "/echo"])
def test_other_routes_answer_as_with_fastapi(path: str) -> None:
    found, expected = (client.get(path) for client in (DIRECT, FASTAPI))
    assert (found.status_code, found.text) == (expected.status_code, expected.text)


def test_valid_json_reaches_the_route_without_fastapis_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(**_: object) -> None:
        raise AssertionError("FastAPI looks for the arguments")

    monkeypatch.setattr("fastapi.routing.solve_dependencies", fail)
    assert DIRECT.post("/echo", json={"text": "a"}).status_code == 200
    assert DIRECT.get("/plain").json() == {"plain": True}
    with pytest.raises(AssertionError, match="FastAPI looks"):
        DIRECT.get("/query")


def test_a_route_of_an_app_with_dependencies_is_called_by_fastapi() -> None:
    seen = []
    app = FastAPI(dependencies=[Depends(lambda: seen.append("asked"))])
    app.router.route_class = FastRoute

    @app.post("/echo")
    async def echo(body: Wanted) -> Response:
        return Response(body.kind)

    client = httpx.Client(transport=InProcess(app), base_url="http://tests")
    assert client.post("/echo", json={"text": "a", "kind": "b"}).text == "b"
    assert seen == ["asked"]


def test_only_functions_of_the_request_and_one_body_that_return_a_response_are_called_directly() -> None:
    async def both(request: Request, body: Wanted) -> Response: ...  # type: ignore[empty-body]
    async def neither() -> Response: ...  # type: ignore[empty-body]
    async def two_bodies(one: Wanted, other: Wanted) -> Response: ...  # type: ignore[empty-body]
    async def content(body: Wanted) -> dict[str, str]: ...  # type: ignore[empty-body]
    def in_a_thread(body: Wanted) -> Response: ...  # type: ignore[empty-body]

    assert arguments(both) == ("request", "body", Wanted)
    assert arguments(neither) == ("", "", None)
    assert [arguments(other) for other in (two_bodies, content, in_a_thread)] == [None, None, None]


async def test_a_body_that_waits_is_read(client: httpx.Client) -> None:
    messages = [
        {"type": "http.request", "body": part, "more_body": part != b'"a"}'} for part in (b'{"text": ', b'"a"}')
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/echo", "headers": headers, "query_string": b""}
    await make_app(FastRoute)(scope, receive, send)
    assert sent[0]["status"] == 200
