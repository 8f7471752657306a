"""The app over an open bundle, with batches and metrics, as granian runs it."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from function.app import create_app
from function.engine.embedder import TOKENS_PER_BATCH
from function.engine.loading import LoadedTexts, load
from function.http import ASGIApp, Message, Receive, Scope, Send
from function.server.batching import LONGEST_WAIT, Admission, BatchingExecutor
from function.server.metrics import CountingLog, Metrics
from function.settings import Settings
from function.startup import ColdStart
from function.telemetry import Stopwatch, make_logger

STOPPING = signal.SIGUSR1  # tells a worker that the server is about to stop
PATIENCE = 0.05  # seconds; a request that takes less time is not watched


@dataclass(frozen=True, slots=True)
class Batching:
    """How a process embeds: threads with the model, and the maximum tokens of the queue and of a batch.

    A 429 is delayed by at most `longest_wait` seconds.
    """

    threads: int
    max_queued_tokens: int
    tokens_per_batch: int = TOKENS_PER_BATCH
    longest_wait: float = LONGEST_WAIT


def _do_nothing() -> None:
    pass


class ServerApp:
    """Calls `start` and `stop` with the server, and cancels a request whose caller has hung up.

    ASGI servers only send the app a message when a caller hangs up, and let the request continue.
    """

    def __init__(
        self,
        app: ASGIApp,
        report_left: Callable[[], None],
        start: Callable[[], None] = _do_nothing,
        stop: Callable[[], None] = _do_nothing,
        patience: float = PATIENCE,
    ) -> None:
        """Call report_left for each request that is cancelled. A request is watched after `patience` seconds."""
        self.app = app
        self._report_left = report_left
        self._start, self._stop = start, stop
        self._patience = patience
        self._is_stopping = False

    def close_connections(self) -> None:
        """Let each reply from now on close its connection, because the server is about to stop."""
        self._is_stopping = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the lifespan of a worker."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if scope["type"] == "lifespan":
            loop.add_signal_handler(STOPPING, self.close_connections)
            for event, work in (("startup", self._start), ("shutdown", self._stop)):
                await receive()
                work()
                await send({"type": f"lifespan.{event}.complete"})
            return
        assert task is not None
        timer: asyncio.TimerHandle
        watcher: asyncio.Task[None] | None = None
        has_body = is_answered = has_left = False

        async def receive_body() -> Message:
            nonlocal has_body
            message = await receive()
            has_body = has_body or not message.get("more_body", False)
            return message

        async def send_and_note(message: Message) -> None:
            nonlocal is_answered
            is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            if self._is_stopping and message["type"] == "http.response.start":
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
                timer = loop.call_later(self._patience, start_watching)

        timer = loop.call_later(self._patience, start_watching)
        try:
            await self.app(scope, receive_body, send_and_note)
        except asyncio.CancelledError:
            if not has_left:
                raise
            task.uncancel()
            self._report_left()
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()


def make_app(settings: Settings, batching: Batching) -> ServerApp:
    """Return the app over the bundle of these settings. Raises the same errors as load and create_app."""
    stopwatch = Stopwatch()
    reloader = None
    if settings.bundle_url:
        from function.s3.wiring import make_reloader

        reloader = make_reloader(settings, by_requests=False)
        reloader.fetch()
        stopwatch.lap("fetch")
    bundle = load(settings.bundle_dir) if reloader is None else reloader.load()
    if isinstance(bundle, LoadedTexts):
        bundle.open_all()
    stopwatch.lap("load")
    metrics = Metrics()
    log = CountingLog(make_logger(settings), metrics)
    cold_start = ColdStart(lambda phases: log.info("start", extra={"milliseconds": phases}))
    cold_start.end(stopwatch.phases)
    executor = BatchingExecutor(
        bundle.embedder, batching.threads, batching.max_queued_tokens, batching.tokens_per_batch, metrics
    )
    admission = partial(Admission, executor=executor, longest_wait=batching.longest_wait)
    app = create_app(bundle, settings, log, cold_start, executor, reloader, admission)
    metrics.add_route(app.fastapi)  # makes it now: a server has the time, and its workers share what that imports
    cold_start.report(cold_start.take())  # at once, because no request waited for this start
    if reloader is None:
        return ServerApp(app, metrics.count_left)
    return ServerApp(app, metrics.count_left, reloader.polls.start_forever, reloader.stop)
