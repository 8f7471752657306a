"""Cancel requests of callers that hang up, and close connections when the server stops."""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATIENCE = 0.05  # seconds; a request that takes less time is not watched


def _do_nothing() -> None:
    pass


class CancelOnDisconnect:
    """Cancels a request whose caller has hung up. ASGI servers only send the app a message, and let it continue."""

    def __init__(
        self,
        app: ASGIApp,
        report_left: Callable[[], None],
        prepare: Callable[[], None] = _do_nothing,
        start: Callable[[], None] = _do_nothing,
        stop: Callable[[], None] = _do_nothing,
    ) -> None:
        """Call report_left for each request that is cancelled.

        The server calls `prepare` in each worker before it accepts connections, and `start` and `stop` in each process
        that accepts them.
        """
        self.app = app
        self.prepare, self.start, self.stop = prepare, start, stop
        self._report_left = report_left
        self.is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. While the server stops, the reply says that the connection will be closed."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        watcher: asyncio.Task[None] | None = None
        timer: asyncio.TimerHandle | None = None
        has_body = is_answered = has_left = False

        async def receive_body() -> Message:
            nonlocal has_body
            message = await receive()
            has_body = has_body or not message.get("more_body", False)
            return message

        async def send_last(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.body":
                is_answered = not message.get("more_body", False)
            elif self.is_stopping and message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        async def watch() -> None:
            nonlocal has_left
            if (await receive())["type"] == "http.disconnect" and not is_answered:
                has_left = True
                task.cancel()

        def start_watching() -> None:
            nonlocal watcher, timer
            if has_body:  # otherwise the app itself still receives
                watcher = loop.create_task(watch())
            else:
                timer = loop.call_later(PATIENCE, start_watching)

        timer = loop.call_later(PATIENCE, start_watching)
        try:
            await self.app(scope, receive_body, send_last)
        except asyncio.CancelledError:
            if not has_left:
                raise
            task.uncancel()
            self._report_left()
        finally:
            if timer is not None:
                timer.cancel()
            if watcher is not None:
                watcher.cancel()
