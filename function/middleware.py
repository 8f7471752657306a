"""ASGI middleware, outermost first: RequestLog, HeadRequests, ApiKeys of function/api_keys.py, RequestLimits.

function/app.py adds them, ApiKeys only if there are keys. Two others are outside of them: CORSMiddleware, if there are
CORS origins, and BundlePerRequest of function/s3/active_bundle.py, if the bundle is in S3.
"""

import os

from function.errors import error_reply
from function.http import ASGIApp, DisconnectError, Message, Receive, Scope, Send, replay
from function.startup import ColdStart
from function.telemetry import Log, Stopwatch, server_timing

RETRY_AFTER = "1"  # seconds


class RequestLog:
    """Times and logs each request, answers a failed one with a 500, and puts the request's id into every reply."""

    def __init__(self, app: ASGIApp, logger: Log, cold_start: ColdStart) -> None:
        """Log to `logger`. The first reply after the start has the start's phases too, and causes their report."""
        self._app = app
        self._logger = logger
        self._cold_start = cold_start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. `scope["log_as"]` is the message of its log line, by default "request"."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stopwatch = scope["stopwatch"] = Stopwatch()
        request_id = _request_id(scope)
        start = self._cold_start.take()
        status = payload_bytes = 0

        async def count_bytes() -> Message:
            nonlocal payload_bytes
            message = await receive()
            payload_bytes += len(message.get("body", b""))
            return message

        async def timed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                phases = {f"init-{phase}": milliseconds for phase, milliseconds in start.items()} | stopwatch.phases
                timing = server_timing(phases, stopwatch.total())
                ours = [(b"x-request-id", request_id.encode()), (b"server-timing", timing.encode())]
                message["headers"] = [*message["headers"], *ours]
            await send(message)

        try:
            await self._app(scope, count_bytes, timed_send)
        except DisconnectError:
            extra = {"path": scope["path"], "request_id": request_id}
            self._logger.info("the caller left before the body was whole", extra=extra)
            return
        except Exception:  # an unforeseen one is logged once, with its trace
            self._logger.exception("request failed", extra={"request_id": request_id})
            if status:
                raise  # the reply has begun and cannot be taken back
            message = f"the request failed; its trace is in the log under the request id {request_id}"
            await error_reply(500, message, scope["path"])(scope, receive, timed_send)
        if not self._cold_start.is_over:
            return
        if start:
            self._cold_start.report(start)
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "payload_bytes": payload_bytes,
            "milliseconds": round(stopwatch.total(), 3),
            "phases": {phase: round(milliseconds, 3) for phase, milliseconds in stopwatch.phases.items()},
            "cold_start": bool(start),
            "request_id": request_id,
        }
        if scope.get("refusal"):
            fields["error"] = scope["refusal"]
        self._logger.info(scope.get("log_as", "request"), extra=fields)


def _request_id(scope: Scope) -> str:
    """Return Lambda's id of the invocation, or a random id for a warm-up or on a server."""
    return getattr(scope.get("aws.context"), "aws_request_id", None) or os.urandom(16).hex()


class RequestLimits:
    """Refuses bodies that are too large, and events and requests that cannot be read."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; one with a message in `scope["refusal"]` gets that as its error.

        The status is `scope["refusal_status"]`, or 400. A server can set both while the body arrives, so they are read
        again after it.
        Raises DisconnectError if the caller leaves before the body is whole.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, length = (b"", 0) if scope.get("refusal") else await self._read(receive)
        if scope.get("refusal"):
            status = scope.get("refusal_status", 400)
            reply = error_reply(status, scope["refusal"], scope["path"])
            if status == 429:
                reply.headers["retry-after"] = RETRY_AFTER
            await reply(scope, receive, send)
        elif body is None:
            message = f"body: {length} bytes or more, at most {self._max_body_bytes}; send fewer or shorter texts"
            await error_reply(413, message, scope["path"])(scope, receive, send)
        else:
            await self._app(scope, replay({"type": "http.request", "body": body, "more_body": False}, receive), send)

    async def _read(self, receive: Receive) -> tuple[bytes | None, int]:
        """Return the body and its length in bytes, or None and the bytes so far as soon as they exceed the limit."""
        parts, length = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectError
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > self._max_body_bytes:
                return None, length
            if not message.get("more_body", False):
                return b"".join(parts), length


class HeadRequests:
    """Answers HEAD as GET without the body; the headers stay, also content-length (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope.get("method") != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_without_body)
