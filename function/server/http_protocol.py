"""Read HTTP/1.1 with httptools and uvicorn, within limits that these do not have.

A request that cannot be read is refused after the replies to the requests before it, and its connection is closed. The
app sends the refusal, so it is logged and counted like every reply: `scope["refusal"]` is the message of the error, and
`scope["refusal_status"]` the status.
"""

import asyncio
from enum import Enum, auto
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from function.server.heads import (
    FORM,
    Refused,
    check_head,
    check_head_bytes,
    head_bytes,
    target_fields,
    without_offer,
)
from function.server.limits import LargeBodies, Limits, Progress


class Place(Enum):
    """What the next byte belongs to."""

    NOTHING = auto()  # no request has begun
    HEAD = auto()
    BODY = auto()


class Exchange(RequestResponseCycle):
    """A request and its reply. A reply that begins before the request's body ends is the connection's last one."""

    is_last = False
    body_bytes = 0  # bytes of the body that were received
    large_bytes = 0  # the same bytes, if they are counted in LargeBodies

    async def send(self, message: Any) -> None:
        """Send a part of the reply. The protocol closes the connection, not uvicorn's method."""
        is_start = not self.response_started
        if is_start and self.more_body:
            self.keep_alive = False
        await super().send(message)
        if is_start:
            self.is_last, self.keep_alive = not self.keep_alive, True


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    scope: Any  # uvicorn's type lacks the fields that the app adds

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
        large_bodies: LargeBodies,
    ) -> None:
        """Take what uvicorn passes, the limits, and the bodies of all connections of this process."""
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._large_bodies = large_bodies
        self._place = Place.NOTHING
        self._unused_bytes = 0  # bytes received since the last whole head or byte of a body
        self._is_offer = False  # the head that was read offers another protocol
        self._running: Exchange | None = None  # the request that the app answers or has answered last
        self._is_over = False  # nothing more is read
        self._waiting_since = 0.0  # when the connection was made, or the last reply ended
        self._closes_at = float("inf")  # by the clock of the event loop, like _waiting_since
        self._receiving, self._sending = Progress(limits), Progress(limits)

    # what the event loop calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to read, unless there are too many connections."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        most = self._limits.connections
        if len(self.connections) > 2 * most:
            transport.abort()
        elif len(self.connections) > most:
            found = f"connection: this one would be number {len(self.connections)}"
            self._refuse(Refused(429, f"{found}, expected {most} at most in each process; try again"))

    def data_received(self, data: bytes) -> None:
        """Read the next bytes."""
        if self._is_over:
            return
        self._unset_keepalive_if_required()
        self._unused_bytes += len(data)
        try:
            self._parse(data)
            check_head_bytes(self._unused_bytes, self._limits.head_bytes)
        except Refused as refused:
            self._refuse(refused)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, Refused):
                raise
            self._refuse(error.__context__)
        except httptools.HttpParserError as error:
            self._refuse(Refused(400, f"request: cannot be read ({error}), {FORM}; correct the client"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End all requests of this connection."""
        super().connection_lost(exc)
        for exchange in (self._running, *(waiting for waiting, _ in self.pipeline)):
            if isinstance(exchange, Exchange):
                self._forget_body(exchange)
                exchange.disconnected = True
                exchange.message_event.set()

    # what httptools calls

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        self._place = Place.HEAD
        super().on_message_begin()
        self.scope.update(method="", path="", raw_path=b"", query_string=b"")

    def on_headers_complete(self) -> None:
        """Read a whole head. Raises Refused if the request cannot be answered."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self._is_offer = self.parser.should_upgrade() and method != b"CONNECT"
        if self._is_offer:
            return
        self._unused_bytes = 0
        check_head_bytes(head_bytes(self.url, self.headers), self._limits.head_bytes)
        self.scope.update(target_fields(method, self.url), http_version=version)
        check_head(version, self.headers, self._limits.body_bytes)
        if len(self.pipeline) == self._limits.pipelined:
            found = f"connection: more than {self._limits.pipelined} requests wait for replies"
            raise Refused(429, f"{found}, expected that many at most; wait for replies before sending more")
        self.headers = []  # the scope keeps its own; headers that follow a body in chunks are ignored
        self._place = Place.BODY
        self._receiving.restart(self.loop.time(), 0)
        self._begin(keep_alive=version != "1.0" and self.parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        """Read a part of a body. Raises Refused if the large bodies of all connections take too much memory."""
        self._unused_bytes = 0
        exchange = self._reading
        exchange.body_bytes += len(body)
        if exchange.body_bytes > self._limits.small_body_bytes:
            self._large_bodies.add(exchange.body_bytes - exchange.large_bytes)
            exchange.large_bytes = exchange.body_bytes
            if self._large_bodies.bytes > self._limits.large_bodies_bytes:
                found = f"body: with it, large bodies would take {self._large_bodies.bytes} bytes of memory"
                raise Refused(429, f"{found}, expected {self._limits.large_bodies_bytes} at most; try again")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        if not self._is_offer:
            self._place = Place.NOTHING
            super().on_message_complete()

    # what the exchanges call

    def on_response_complete(self) -> None:
        """Answer the next request, or wait for it, or close the connection."""
        assert self._running is not None
        self._forget_body(self._running)
        self._waiting_since = self.loop.time()
        if self.transport.is_closing():
            return
        if not self._running.is_last:
            super().on_response_complete()
        elif self._is_over or self._place is Place.BODY:
            self._is_over = True
            self._closes_at = self.loop.time() + self._limits.seconds_to_linger
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    # what the server calls

    def check(self, now: float) -> None:
        """Refuse or close the connection if it is too slow; the server calls this once a second."""
        unsent = self.transport.get_write_buffer_size()
        is_idle = self._running is None or self._running.response_complete
        if not unsent:
            self._sending.restart(now, 0)
        elif self._sending.is_slow(now, -unsent):
            self.transport.abort()
        if now > self._closes_at:
            self.transport.close()
        elif self._is_over or self.transport.is_closing():
            return
        elif self._place is Place.BODY:
            self._check_body(now)
        elif is_idle and now - self._waiting_since > self._limits.seconds_for_head:
            if self._place is Place.NOTHING:
                self.transport.close()
            else:
                found = f"head: not whole after {self._limits.seconds_for_head:g} s"
                self._refuse(Refused(408, f"{found}, expected all headers and an empty line; send it again"))

    def _parse(self, data: bytes) -> None:
        """Pass bytes to httptools.

        httptools takes an offer of another protocol (`Upgrade`) for accepted: it skips the body and reads what follows
        as a new request (https://github.com/Kludex/uvicorn/issues/2722). So a head with an offer is read again without
        the offer, by a parser that has seen nothing else. Java's HttpClient makes an offer with each request.
        """
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            method, version = self.parser.get_method(), self.parser.get_http_version()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self.parser.feed_data(without_offer(method, self.url, version, self.headers))

    def _check_body(self, now: float) -> None:
        """Refuse a body that arrives too slowly. Time in which the server does not read is not counted."""
        found, limits = self._reading.body_bytes, self._limits
        if self.flow.read_paused:
            self._receiving.restart(now, found)
        elif self._receiving.is_slow(now, found):
            expected = f"at least {limits.least_bytes} bytes more every {limits.seconds_for_bytes:g} s"
            self._refuse(
                Refused(408, f"body: stopped after {found} bytes, expected its end or {expected}; send it again")
            )

    def _begin(self, keep_alive: bool) -> None:
        """Let the app answer the request whose head was read, as soon as those before it are answered."""
        former = self.cycle
        self.cycle = self._reading = Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        if former is None or former.response_complete:
            self._start_asgi_task(self._reading, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self._reading, self.app))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, Exchange)
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _refuse(self, refused: Refused) -> None:
        """Read no more, and answer what was being read with an error, unless its reply has begun."""
        self._is_over = True
        if self._place is not Place.BODY:
            if self._place is Place.NOTHING:
                self.on_message_begin()
            self.scope["is_direct"] = True  # it gets the same reply with an API key and without one
            self._begin(keep_alive=False)
        elif self._reading.response_started:
            return
        exchange = self._reading
        scope: Any = exchange.scope
        scope.update(refusal=str(refused), refusal_status=refused.status)
        exchange.keep_alive = exchange.more_body = False
        exchange.body.clear()
        self._forget_body(exchange)
        exchange.message_event.set()

    def _forget_body(self, exchange: Exchange) -> None:
        self._large_bodies.remove(exchange.large_bytes)
        exchange.large_bytes = 0
