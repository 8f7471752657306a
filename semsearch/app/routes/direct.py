"""Routes that are answered without FastAPI, so that a start does not import it.

A plain and valid request to one of these routes is answered here. Every other request goes to the FastAPI app, which
has the same routes (`add_direct_route`), and answers wrong bodies with its own errors.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from semsearch.app.errors import Replies, reply_to
from semsearch.app.http import ASGIApp, HttpError, Receive, Reply, Scope, Send, header, replay
from semsearch.app.telemetry import Stopwatch

if TYPE_CHECKING:
    from fastapi import FastAPI

JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """A route, the model of its body (None: it reads no body), what answers it, and its OpenAPI description.

    `answer` returns a reply's JSON, or raises HttpError.
    """

    method: str
    path: str
    model: type[BaseModel] | None
    answer: Callable[[Any, Stopwatch], Awaitable[bytes]]
    summary: str
    responses: Replies
    tag: str  # the group of the OpenAPI document
    description: str = ""


class DirectRoutes:
    """Answers plain, valid requests to some routes, and leaves others to an app that is made when it is needed."""

    def __init__(self, routes: Sequence[DirectRoute], others: Callable[[], ASGIApp]) -> None:
        """Call `others` for each request that is not answered here; it returns the app that answers it."""
        self._routes = {(route.method, route.path): route for route in routes}
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose body comes in one message."""
        route = self._routes.get((scope.get("method", ""), scope.get("path", "")))
        body = None
        try:
            if route is not None and route.model is not None:
                message = await receive()
                receive = replay(message, receive)
                body = read_body(route.model, message["body"], header(scope, b"content-type"))
            if route is None or (route.model is not None and body is None):
                await self._others()(scope, receive, send)
                return
            reply = Reply(await route.answer(body, scope["stopwatch"]))
        except HttpError as error:
            reply = reply_to(error, scope["path"])
        await reply(scope, receive, send)


def read_body(model: type[BaseModel], body: bytes, content_type: bytes) -> BaseModel | None:
    """Return a body of JSON as its model; None if it is not plain and valid."""
    if content_type != JSON and not content_type.startswith(JSON + b";"):  # FastAPI knows the other spellings
        return None
    try:
        return model.model_validate_json(body)
    except ValueError:
        return None


def add_direct_route(app: "FastAPI", route: DirectRoute) -> None:
    """Add the route to a FastAPI app, which reads the body as it reads all others and describes the route."""
    from fastapi import Request, Response

    from semsearch.app.routes.replies import text_reply
    from semsearch.app.telemetry import stopwatch_of

    async def without_body(request: Request) -> Response:
        return text_reply(await route.answer(None, stopwatch_of(request)))

    async def with_body(body: route.model, request: Request) -> Response:  # type: ignore[name-defined]
        return text_reply(await route.answer(body, stopwatch_of(request)))

    app.add_api_route(
        route.path,
        without_body if route.model is None else with_body,
        methods=[route.method],
        name=route.path.strip("/"),
        responses=route.responses,
        tags=[route.tag],
        summary=route.summary,
        description=route.description,
    )
