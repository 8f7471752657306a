"""From Lambda's events to the app and back: Mangum's work, and before it the checks and the paths of events."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Any

from mangum import Mangum
from mangum.handlers import HTTPGateway
from mangum.protocols import HTTPCycle
from mangum.types import ASGI, LambdaConfig, LambdaContext, LambdaEvent, Receive, Response, Scope, Send

from function.events.fields import Event, EventError
from function.events.http import http_event

Handler = Callable[[object, LambdaContext], dict[str, Any]]


def make_handler(app: ASGI, base_path: str) -> Handler:
    """Return the Lambda handler of an app whose routes lie under base_path, "/" for none.

    It answers every event that JSON can hold. An event that is no request is answered with a 400.
    """
    routed = _with_route_paths(app, base_path)
    formats = Mangum(routed, lifespan="off", custom_handlers=[HttpApi])

    def handle(event: object, context: LambdaContext) -> dict[str, Any]:
        request = formats.infer(checked_event(event), context)
        return request(_answer(routed, request.scope, request.body))

    return handle


class HttpApi(HTTPGateway):
    """Mangum's reader of HTTP APIs and function URLs, which would make the scope once more for the reply."""

    @classmethod
    def infer(cls, event: LambdaEvent, context: LambdaContext, config: LambdaConfig) -> bool:
        """Return whether a checked event has this format; Mangum would ask about load balancers first."""
        return "http" in event["requestContext"]

    @cached_property
    def scope(self) -> Scope:
        """Return the request's scope."""
        return super().scope


def _answer(app: ASGI, scope: Scope, body: bytes) -> Response:
    """Return the app's reply to one request.

    Mangum's own call goes round the event loop once more, to learn that the app has answered.
    """
    cycle = HTTPCycle(scope, body)
    loop = asyncio.get_event_loop()
    task = loop.create_task(cycle.run(app))
    loop.call_soon(loop.stop)  # once the task has run up to where it waits, which in Lambda is its end
    loop.run_forever()
    if not task.done():
        loop.run_until_complete(task)
    return {"status": cycle.status, "headers": cycle.headers, "body": cycle.body}


def checked_event(event: object) -> Event:
    """Return an event that Mangum can read: the HTTP request that the event is or stands for, or its refusal."""
    try:
        if (checked := http_event(event)) is not None:
            return checked
        from function.events.other import as_http_event  # not needed to start

        return as_http_event(event)
    except EventError as error:
        from function.events.other import refused_event  # not needed to start

        return refused_event(event, str(error))


def _with_route_paths(app: ASGI, base_path: str) -> ASGI:
    """Return the app, called with the paths of its routes and with what a checked event says of its log line."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        event = scope["aws.event"]
        scope["path"] = route_path(scope["path"], event, base_path)
        scope["refusal"] = event["refusal"]
        scope["is_direct"] = event["is_direct"]
        scope["log_as"] = event["log_as"]
        await app(scope, receive, send)

    return call


def route_path(path: str, event: Event, base_path: str) -> str:
    """Return an event's path without the stage of its HTTP API and without base_path.

    A named stage always comes first in an HTTP API's paths, with a custom domain too
    (https://github.com/CodeGenieApp/serverless-express/issues/465), so one that stands alone is the API's root. The
    base path may be missing, as it is where the same API is asked by its own address, so it is taken off only where a
    path follows. Mangum's own api_gateway_base_path is not used: it cuts words, and of /predict it would take /p.
    """
    stage = event["requestContext"].get("stage", "$default")
    if event.get("version") == "2.0" and stage != "$default" and f"{path}/".startswith(f"/{stage}/"):
        path = path.removeprefix(f"/{stage}") or "/"
    base = base_path.rstrip("/")
    return path.removeprefix(base) if path.startswith(f"{base}/") else path
