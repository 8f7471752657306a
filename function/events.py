"""From Lambda's events to the app and back: Mangum's work, and before it paths with more than a route in them."""

from collections.abc import Callable
from typing import Any

from mangum import Mangum
from mangum.types import ASGI, LambdaContext, Receive, Scope, Send

Event = dict[str, Any]
Handler = Callable[[Event, LambdaContext], dict[str, Any]]


def make_handler(app: ASGI, refusal: ASGI, base_path: str) -> Handler:
    """Give the Lambda handler of an app whose routes lie under base_path, "/" for none.

    An event whose body is said to be base64 and is none gets the answer of `refusal`.
    """
    answer = Mangum(_at_its_routes(app, base_path), lifespan="off")  # on, it starts and stops the app for every event
    refuse = Mangum(refusal, lifespan="off")

    def handle(event: Event, context: LambdaContext) -> dict[str, Any]:
        try:
            return answer(event, context)
        except ValueError:  # of b64decode, before the app is asked: what the app raises does not come through Mangum
            if not event.get("isBase64Encoded"):
                raise
        return refuse(event | {"isBase64Encoded": False}, context)

    return handle


def _at_its_routes(app: ASGI, base_path: str) -> ASGI:
    """Give the app, asked for its routes by the paths of events."""

    async def ask(scope: Scope, receive: Receive, send: Send) -> None:
        scope["path"] = route_path(scope["path"], scope["aws.event"], base_path)
        await app(scope, receive, send)

    return ask


def route_path(path: str, event: Event, base_path: str) -> str:
    """Give an event's path without the stage of its HTTP API and without base_path.

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
