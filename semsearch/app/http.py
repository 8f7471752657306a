"""HTTP without a web framework: the types of ASGI, a reply in JSON, and an error that becomes one.

A start of the function imports neither FastAPI nor Starlette, so what answers its first requests uses only this.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpError(Exception):
    """A request that is refused: the status, the message and further headers of its reply.

    `reason` is what the log says of a status of 5xx: by default the message, which callers read.
    """

    def __init__(
        self, status_code: int, detail: str, headers: Mapping[str, str] | None = None, reason: str | None = None
    ) -> None:
        super().__init__(status_code, detail)
        self.status_code = status_code
        self.detail = detail
        self.headers: dict[str, str] = dict(headers or {})
        self.reason: str = reason or detail


@dataclass(slots=True)
class Reply:
    """A reply in JSON, as an ASGI app that sends it: with the same bytes as Starlette's JSONResponse.

    `reason` becomes the field `error` of the request's log line if the status is 5xx.
    """

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        if self.status >= 500:
            scope.setdefault("log_fields", {})["error"] = self.reason
        headers = {"content-length": str(len(self.body)), "content-type": "application/json"} | self.headers
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": encoded})
        await send({"type": "http.response.body", "body": self.body})


def header(scope: Scope | Message, name: bytes) -> bytes:
    """Return the first value of a header of a request or a reply; b"" if there is none. The name is in lower case."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def replay(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that returns this message first, then the next ones."""
    unread = [message]

    async def receive_again() -> Message:
        if unread:
            return unread.pop()
        return await receive()

    return receive_again
