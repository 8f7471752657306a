"""Around every request: its size is limited, its time measured, told and logged, and its crash caught."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from function.cold_start import ColdStart
from function.errors import error_reply
from function.stopwatch import Stopwatch, server_timing


class Log(Protocol):
    """What is needed of a logger: the standard library's, powertools' or a test's."""

    def info(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Log one line with further fields."""

    def exception(self, msg: object) -> None:
        """Log one line with the trace of the exception at hand."""


class RequestLog:
    """ASGI middleware, the outermost of the app's own."""

    def __init__(self, app: ASGIApp, logger: Log, max_body_bytes: int, cold_start: ColdStart) -> None:
        """Log to `logger`; refuse bodies of more than max_body_bytes with 413.

        The first reply after the start carries the start's phases, and then they are reported.
        """
        self._app = app
        self._logger = logger
        self._max_body_bytes = max_body_bytes
        self._cold_start = cold_start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. The routes find its stopwatch in `request.state`.

        An event that cannot be read has a message in `scope["refusal"]`, and is refused with it. `scope["log_as"]` is
        the message of its line in the log, "request" if there is none.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stopwatch = Stopwatch()
        refusal: str | None = scope.get("refusal")  # function/events.py: the event cannot be read
        start: dict[str, float] = {}
        scope.setdefault("state", {})["stopwatch"] = stopwatch
        status = 0

        async def timed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                phases = {f"init-{phase}": milliseconds for phase, milliseconds in start.items()} | stopwatch.phases
                headers["server-timing"] = server_timing(phases, stopwatch.total())
            await send(message)

        try:
            body, payload_bytes = await self._read(receive)
        except ClientDisconnect:
            self._logger.info("the caller left before the body was whole", extra={"path": scope["path"]})
            return
        start = self._cold_start.take()
        try:
            if body is None:
                message = (
                    f"body: {payload_bytes} bytes or more, at most {self._max_body_bytes}; send fewer or shorter texts"
                )
                await error_reply(413, message)(scope, receive, timed_send)
            elif refusal:
                await error_reply(400, refusal)(scope, receive, timed_send)
            else:
                await self._app(scope, _replay(body, receive), timed_send)
        except Exception:  # the top: what nobody foresaw is logged once, with its trace, and the caller is told
            self._logger.exception("request failed")
            if status:
                raise  # the reply has begun and cannot be taken back
            await error_reply(500, "the request failed; its trace is in the log")(scope, receive, timed_send)
        if not self._cold_start.is_over:
            return
        if start:
            self._cold_start.report(start)
        context = scope.get("aws.context")
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "payload_bytes": payload_bytes,
            "milliseconds": round(stopwatch.total(), 3),
            "phases": {phase: round(milliseconds, 3) for phase, milliseconds in stopwatch.phases.items()},
            "cold_start": bool(start),
            "request_id": getattr(context, "aws_request_id", None),
        }
        if refusal:
            fields["error"] = refusal
        self._logger.info(scope.get("log_as", "request"), extra=fields)

    async def _read(self, receive: Receive) -> tuple[bytes | None, int]:
        """Return the body and its length in bytes, or None and what was read as soon as it is over the limit."""
        parts, length = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > self._max_body_bytes:
                return None, length
            if not message.get("more_body", False):
                return b"".join(parts), length


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that sends the body as one message, then whatever comes next."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
