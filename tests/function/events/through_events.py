"""An ASGI app that calls another app through Lambda events."""

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from function.events import make_handler
from semsearch.app.app import App
from tests.function.events.event_makers import http_api


class ThroughEvents:
    """Turns each request into an event and each reply into a response. The handler runs in a thread of its own."""

    def __init__(self, app: App) -> None:
        self._thread = ThreadPoolExecutor(1, initializer=lambda: asyncio.set_event_loop(asyncio.new_event_loop()))
        is_closed = app.filters is not None
        # Mangum uses the event loop of its thread
        self._handler = self._thread.submit(make_handler, app, "/", is_closed=is_closed).result()

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
        content = base64.b64decode(reply["body"]) if reply["isBase64Encoded"] else reply["body"].encode()
        await send({"type": "http.response.body", "body": content})

    def _ask(self, scope: Scope, body: bytes) -> dict[str, Any]:
        event = http_api(scope["method"], quote(scope["path"]), base64.b64encode(body).decode()) | {
            "isBase64Encoded": True
        }
        event["headers"] = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        event["rawQueryString"] = scope["query_string"].decode("latin-1")
        context: Any = SimpleNamespace(aws_request_id=None)
        return self._handler(event, context)

    def close(self) -> None:
        self._thread.submit(lambda: asyncio.get_event_loop().close()).result()
        self._thread.shutdown()
