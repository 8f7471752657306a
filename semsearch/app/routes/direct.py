"""Routes that are answered without FastAPI, so that a start does not import it.

A plain and valid request to one of these routes is answered here. Every other request goes to the FastAPI app, which
has the same routes (`add_direct_route`), and answers wrong bodies with its own errors.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator

from semsearch.app.errors import reply_to
from semsearch.app.http import ASGIApp, HttpError, Receive, Reply, Scope, Send, header, replay
from semsearch.app.routes.body_schemas import BODY_SCHEMAS
from semsearch.app.telemetry import Stopwatch

if TYPE_CHECKING:
    from fastapi import FastAPI

JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """A route, what answers it, and its OpenAPI description.

    It reads a body if semsearch/app/routes/body_models.py has a model for its path. `answer` gets an object with the
    fields of that model, or None, and returns a reply's JSON or raises HttpError.
    """

    method: str
    path: str
    answer: Callable[[Any, Stopwatch], Awaitable[bytes]]
    summary: str
    responses: Mapping[int, str]  # descriptions of its error replies by status
    tag: str  # the group of the OpenAPI document
    description: str = ""


class DirectRoutes:
    """Answers plain, valid requests to some routes, and leaves others to an app that is made when it is needed."""

    def __init__(self, routes: Sequence[DirectRoute], others: Callable[[], ASGIApp]) -> None:
        """Call `others` for each request that is not answered here; it returns the app that answers it."""
        self._routes = {(route.method, route.path): route for route in routes}
        self._validators = {path: SchemaValidator(schema) for path, schema in BODY_SCHEMAS.items()}
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose body comes in one message."""
        path = scope.get("path", "")
        route = self._routes.get((scope.get("method", ""), path))
        validator = self._validators.get(path)
        body = None
        try:
            if route is not None and validator is not None:
                message = await receive()
                receive = replay(message, receive)
                body = read_body(validator, message["body"], header(scope, b"content-type"))
            if route is None or (validator is not None and body is None):
                await self._others()(scope, receive, send)
                return
            reply = Reply(await route.answer(body, scope["stopwatch"]))
        except HttpError as error:
            reply = reply_to(error, path)
        await reply(scope, receive, send)


def read_body(validator: SchemaValidator, body: bytes, content_type: bytes) -> Any:
    """Return an object with the fields of a body of JSON; None if it is not plain and valid."""
    if content_type != JSON and not content_type.startswith(JSON + b";"):  # FastAPI knows the other spellings
        return None
    try:
        return validator.validate_json(body)
    except ValueError:
        return None


def add_direct_route(app: "FastAPI", route: DirectRoute) -> None:
    """Add the route to a FastAPI app, which reads the body as it reads all others and describes the route."""
    from fastapi import Request, Response

    from semsearch.app.routes.body_models import BODY_MODELS
    from semsearch.app.routes.error_replies import error_replies
    from semsearch.app.routes.replies import text_reply
    from semsearch.app.telemetry import stopwatch_of

    model = BODY_MODELS.get(route.path)

    async def without_body(request: Request) -> Response:
        return text_reply(await route.answer(None, stopwatch_of(request)))

    async def with_body(body: model, request: Request) -> Response:  # type: ignore[valid-type]
        return text_reply(await route.answer(body, stopwatch_of(request)))

    app.add_api_route(
        route.path,
        without_body if model is None else with_body,
        methods=[route.method],
        name=route.path.strip("/"),
        responses=error_replies(route.responses),
        tags=[route.tag],
        summary=route.summary,
        description=route.description,
    )
