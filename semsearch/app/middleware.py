"""ASGI middleware, outermost first: RequestLog, answer_head, compress_replies, AllowedHosts if any, and RequestLimits.

`create_app` puts the layers of semsearch/app/access/ and the server's Admission around RequestLimits. Outside of all of
them are Cors, if there are CORS origins, and `per_request` of semsearch/app/reloading/reloader.py, if the bundle can be
replaced.
"""

import os
import re
from collections.abc import Sequence
from functools import cached_property

from semsearch.app.cold_start import ColdStart
from semsearch.app.errors import error_reply
from semsearch.app.http import ASGIApp, Message, Receive, Reply, Scope, Send, header, replay
from semsearch.app.settings import HOST_NAME
from semsearch.app.telemetry import Log, Stopwatch, server_timing
from semsearch.search.executor import Executor
from semsearch.search.request_values import echo

# https://www.w3.org/TR/trace-context/#traceparent-header, as far as this and later versions agree
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
LOGGED_CHARACTERS = 1_000  # maximum length of a path in the log: callers can send 60,000
# reply headers that web pages on other origins can read
EXPOSED_HEADERS = ("retry-after", "server-timing", "www-authenticate", "x-bundle", "x-request-id")
# Bytes of the smallest reply that is compressed. A smaller one is ten segments of TCP, which a sender sends at once
# (RFC 6928): it arrives in the same round trip, compressed or not.
COMPRESSED_FROM = 14_600
FEW_BYTES = 65_536  # bytes that are compressed in about a millisecond
LEVEL = 1  # zlib's fastest, because a caller waits
GZIP_FORMAT = 31  # zlib's way to ask for gzip, whose header then has no time: the same bytes each time
MOST_DISCARDED = 100_000_000  # bytes of a refused body
# Commas, lists and objects of a body, outside of its strings. Python reads this many in about a tenth of a second, and
# megabytes of them in several seconds. The largest request has 10,000 documents, with a few fields each.
MOST_BODY_VALUES = 50_000
_VALUES = (b",", b"[", b"{")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # without its end too, so that the time is linear


class RequestLog:
    """Times and logs each request, answers a failed one with a 500, and puts the request's id into every reply.

    The line of a request with a status of 5xx is an error, and has the reason as `error`.
    """

    def __init__(self, app: ASGIApp, logger: Log, cold_start: ColdStart) -> None:
        """Log to `logger`. The first reply after the start has the start's phases too, and causes their report."""
        self._app = app
        self._logger = logger
        self._cold_start = cold_start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        `scope["log_as"]` is the message of its log line, by default "request". Layers inside can add fields to
        `scope["log_fields"]`.
        """
        stopwatch = scope["stopwatch"] = Stopwatch()
        log_fields: dict[str, object] = scope.setdefault("log_fields", {})
        trace = header(scope, b"traceparent")
        if TRACEPARENT.fullmatch(trace):
            log_fields["traceparent"] = trace.decode()
        # Lambda's id of the invocation, or a random id for a warm-up or on a server
        request_id = getattr(scope.get("aws.context"), "aws_request_id", None) or os.urandom(16).hex()
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
                ours += [(b"traceparent", trace)] if "traceparent" in log_fields else []
                message["headers"] = [*message["headers"], *ours]
            await send(message)

        try:
            await self._app(scope, count_bytes, timed_send)
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
            "path": scope["path"][:LOGGED_CHARACTERS],
            "status": status,
            "payload_bytes": payload_bytes,
            "milliseconds": round(stopwatch.total(), 3),
            "phases": {phase: round(milliseconds, 3) for phase, milliseconds in stopwatch.phases.items()},
            "cold_start": bool(start),
            "request_id": request_id,
            **log_fields,
        }
        if scope.get("refusal"):
            fields["error"] = scope["refusal"]
        if status >= 500:
            self._logger.error(scope.get("log_as", "request"), extra=fields)
        else:
            self._logger.info(scope.get("log_as", "request"), extra=fields)


class Cors:
    """Adds the headers with which browsers let web pages on other origins read replies.

    HTTP APIs and function URLs have CORS rules of their own and add these headers themselves: behind them, marked by
    `scope["cors_by_aws"]`, they would come twice. Preflight requests, which have no key, are answered here and are not
    logged.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        """Take the origins that are allowed, or * for all."""
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope.get("cors_by_aws") or not header(scope, b"origin"):
            await self._app(scope, receive, send)
        else:
            await self._for_pages(scope, receive, send)

    @cached_property
    def _for_pages(self) -> ASGIApp:
        from starlette.middleware.cors import CORSMiddleware  # a start does not import Starlette

        return CORSMiddleware(
            self._app,
            allow_origins=self._origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=["*"],  # clients send many of their own
            expose_headers=EXPOSED_HEADERS,
            allow_private_network=True,  # the server is often on the same network as the browser
        )


class AllowedHosts:
    """Answers 421 to requests whose header Host has another name than the allowed ones. The port does not matter.

    By DNS rebinding, a web page makes a browser take a server of this machine for the page's own, whose replies the
    page can read. The browser then sends the name of the page as Host.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        """Take the names and addresses that are allowed, in lower case and without ports."""
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        host = header(scope, b"host").decode("latin-1")
        found = re.fullmatch(rf"({HOST_NAME})(:[0-9]*)?", host.lower())
        if found is not None and found[1] in self._names:
            await self._app(scope, receive, send)
            return
        expected = f"expected {', '.join(self._names)}, with any port"
        message = f"host: found {echo(host)}, {expected}; allow another name with --allowed-host or ALLOWED_HOSTS"
        await error_reply(421, message, scope["path"])(scope, receive, send)


class RequestLimits:
    """Refuses unreadable events, and bodies that are too large, compressed, broken off or of too many values."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an event with a message in `scope["refusal"]` gets a 400 with that as its error."""
        refusal, coding = scope.get("refusal"), header(scope, b"content-encoding").decode("latin-1")
        body: bytes | Reply
        if refusal:
            body = error_reply(400, refusal, scope["path"])
        elif coding.lower() not in ("", "identity"):
            message = f"body: content-encoding {echo(coding)}, expected none; send the body uncompressed"
            body = error_reply(415, message, scope["path"])
            body.headers["accept-encoding"] = "identity"  # RFC 9110, section 15.5.16
        else:
            body = await self._read(scope, receive)
        if isinstance(body, Reply):
            await body(scope, receive, send)
            if body.status in (413, 415):
                await discard_body(receive)
        elif has_many_values(body):
            found = f"body: more than {MOST_BODY_VALUES} commas, lists and objects outside of strings"
            await error_reply(413, f"{found}; send fewer values", scope["path"])(scope, receive, send)
        else:
            await self._app(scope, replay({"type": "http.request", "body": body, "more_body": False}, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Reply:
        """Return the body, or the reply to one that is too large, as soon as that is known, or that breaks off."""
        announced = header(scope, b"content-length")
        length, received, is_whole = int(announced) if announced.isdigit() else 0, 0, False
        parts: list[bytes] = []
        while max(length, received) <= self._max_body_bytes:
            if is_whole:
                return b"".join(parts)
            message = await receive()
            if message["type"] == "http.disconnect":  # the caller has left, or has sent bytes that are not HTTP
                found = f"body: broke off after {received} bytes, expected all of it; send it again"
                return error_reply(400, found, scope["path"])
            parts.append(message.get("body", b""))
            received += len(parts[-1])
            is_whole = not message.get("more_body", False)
        found = f"body: {max(length, received)} bytes or more, at most {self._max_body_bytes}"
        return error_reply(413, f"{found}; send fewer or shorter texts", scope["path"])


def has_many_values(body: bytes) -> bool:
    """Return whether a body of JSON has more than MOST_BODY_VALUES commas, lists and objects outside of its strings."""
    if sum(map(body.count, _VALUES)) <= MOST_BODY_VALUES:
        return False
    if 0 in body[:4]:  # UTF-16 or UTF-32, which has quotation marks within other characters
        return True
    most_strings = 2 * MOST_BODY_VALUES  # the names and the values of as many fields
    outside, strings = _STRING.subn(b"", body, most_strings)
    return strings == most_strings or sum(map(outside.count, _VALUES)) > MOST_BODY_VALUES


async def discard_body(receive: Receive) -> None:
    """Read what is left of a body, up to MOST_DISCARDED: many clients read a reply only when they have sent theirs."""
    left = MOST_DISCARDED
    while left > 0:
        message = await receive()
        if not message.get("more_body", False):
            return
        left -= len(message["body"])


def answer_head(app: ASGIApp) -> ASGIApp:
    """Return an app that answers HEAD as GET without the body.

    The headers stay, also content-length (RFC 9110, section 9.3.2).
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["method"] == "HEAD":
            await app({**scope, "method": "GET"}, receive, send_without_body)
        else:
            await app(scope, receive, send)

    return answer


def takes_gzip(scope: Scope) -> bool:
    """Return whether the caller of a request can read gzip and what is between lets it through.

    A REST API hands compressed bytes on as base64 unless it lists the media type as binary, and nothing tells whether.
    """
    if "resource" in (scope.get("aws.event") or {}):
        return False
    weights: dict[str, str] = {}
    for entry in header(scope, b"accept-encoding").decode("latin-1").lower().split(","):
        coding, _, weight = entry.partition(";")
        weights[coding.strip()] = weight
    weight_of_gzip = weights.get("gzip", weights.get("*"))
    return weight_of_gzip is not None and weight_of_gzip.replace(" ", "").rstrip(".0") != "q="  # q=0 and q=0.000


def compress_replies(app: ASGIApp, executor: Executor) -> ASGIApp:
    """Return an app that compresses large replies in JSON for callers that take gzip.

    A reply stays as it is if it does not become a quarter smaller: in Lambda, a compressed one is sent as base64.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if takes_gzip(scope):
            await app(scope, receive, _Compressing(scope, send, executor))
        else:
            await app(scope, receive, send)

    return answer


class _Compressing:
    """The `send` of one request, which keeps the beginning of a reply until its body is compressed."""

    def __init__(self, scope: Scope, send: Send, executor: Executor) -> None:
        self._scope, self._send, self._executor = scope, send, executor
        self._begin: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_large_json(message):
            self._begin = message
            return
        begin, self._begin = self._begin, None
        if begin is not None:
            body = await self._compress(message["body"])
            if body is not None:
                kept = [pair for pair in begin["headers"] if pair[0] != b"content-length"]
                length = str(len(body)).encode()
                ours = [(b"content-length", length), (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
                begin["headers"], message["body"] = [*kept, *ours], body
            await self._send(begin)
        await self._send(message)

    async def _compress(self, body: bytes) -> bytes | None:
        """Return the compressed body; None if it is hardly smaller."""
        import zlib  # a start does not need it

        def work() -> bytes:
            return zlib.compress(body, LEVEL, GZIP_FORMAT)

        compressed = work() if len(body) <= FEW_BYTES else await self._executor.run(work)
        stopwatch = self._scope.get("stopwatch")
        if stopwatch is not None and "reply" in stopwatch.phases:
            stopwatch.lap("reply")
        if 4 * len(compressed) <= 3 * len(body):
            return compressed
        return None


def _is_large_json(begin: Message) -> bool:
    """Return whether a reply is JSON that is large enough and not compressed, by the message with which it begins."""
    length = header(begin, b"content-length")
    is_json = header(begin, b"content-type").startswith(b"application/json")
    is_large = length.isdigit() and int(length) >= COMPRESSED_FROM
    return is_json and is_large and not header(begin, b"content-encoding")
