"""The app of the server around that of the function: it counts requests, and cancels those whose caller has left."""

import asyncio
import os
import signal
from functools import partial

from semsearch.app.access.keys import StatedKeys
from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.freshness import Since
from semsearch.app.http import ASGIApp, Message, Receive, Scope, Send
from semsearch.app.reloading.reloader import FolderReloader, Reloader
from semsearch.app.settings import Settings
from semsearch.app.shared_memory import Handover, SharedFailures
from semsearch.app.telemetry import Log, Stopwatch, make_logger
from semsearch.engine.embedder import TOKENS_PER_BATCH
from semsearch.server.batching import Admission, BatchingExecutor
from semsearch.server.connections import Connections, as_peer
from semsearch.server.metrics import Metrics

STOPPING = signal.SIGUSR1  # tells a worker that the server is about to stop
HIDDEN_ERROR = "see GET /info"  # not every caller is allowed to read the error of an update
KEYS_BYTES = 1_000_000  # maximum length of the keys that a worker leaves; a secret in AWS has at most 65,536
PATIENCE = 0.05  # seconds; a request that takes less time is not watched


class ServerApp:
    """Counts requests, cancels one whose caller has hung up, and lets the reloader, if any, poll while it serves.

    ASGI servers only send the app a message when a caller hangs up, and let the request continue.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        reloader: Reloader | None = None,
        keys: StatedKeys | None = None,
        log: Log | None = None,
        workers: int = 1,
        patience: float = PATIENCE,
    ) -> None:
        """Prepare for this number of workers. Watch a request after `patience` seconds."""
        self.app = app
        self._metrics = metrics
        self.reloader = reloader
        self._keys = keys
        self._bundles = [Handover() for _ in range(workers)]  # what each worker serves
        self._accepted = [Handover(KEYS_BYTES) for _ in range(workers)]  # keys that each worker accepts
        self._log = log
        self._connections: Connections | None = None
        self._patience = patience
        self._is_stopping = False

    def begin(self, worker: int) -> None:
        """Take the place of the worker that had this number, from 0, before this process.

        Count in its row, accept its keys, and serve its bundle.
        """
        self._metrics.begin(worker)
        if self._keys is not None:
            self._keys.follow(self._accepted[worker])
        if self.reloader is not None:
            self.reloader.follow(self._bundles[worker])
            self._metrics.set_bundle(self.reloader.status)

    def watch_connections(self, port: int, most: int) -> None:
        """Watch the connections to this port, of which each worker accepts `most`."""
        assert self._log is not None
        self._connections = Connections(port, most, self._log, self._metrics.set_connections)

    def log_failed_update(self, error: str) -> None:
        """Log why the index of documents was not updated, or not with all of them."""
        assert self._log is not None
        self._log.error("index update failed", extra={"error": error})

    def look_again(self) -> None:
        """Look for a new bundle now, and read the API keys again."""
        if self.reloader is not None:
            self.reloader.poll_now()
        if self._keys is not None:
            self._keys.read_again()

    def close_connections(self) -> None:
        """Let each reply from now on close its connection, because the server is about to stop."""
        self._is_stopping = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the lifespan of a worker."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if scope["type"] == "lifespan":
            loop.add_signal_handler(STOPPING, self.close_connections)
            loop.add_signal_handler(signal.SIGHUP, self.look_again)
            await receive()
            if self.reloader is not None:
                self.reloader.poll_forever()
            watching = None
            if self._connections is not None:
                watching = loop.create_task(self._connections.watch())
            await send({"type": "lifespan.startup.complete"})
            await receive()
            if watching is not None:
                watching.cancel()
            if self.reloader is not None:
                self.reloader.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert task is not None
        timer: asyncio.TimerHandle
        watcher: asyncio.Task[None] | None = None
        has_body = is_answered = has_left = False
        status = 0

        async def receive_body() -> Message:
            nonlocal has_body
            message = await receive()
            has_body = has_body or not message.get("more_body", False)
            return message

        async def send_and_note(message: Message) -> None:
            nonlocal is_answered, status
            is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._is_stopping:
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
        if self._connections is not None:
            self._connections.begin(as_peer(scope["client"]))
        try:
            await self.app(scope, receive_body, send_and_note)
            if status and "stopwatch" in scope:  # not in a preflight request of CORS
                self._metrics.count_request(scope["path"], status, scope["stopwatch"])
        except asyncio.CancelledError:
            if not has_left:
                raise
            task.uncancel()
            self._metrics.count_left()
        finally:
            if self._connections is not None:
                self._connections.end(as_peer(scope["client"]))
            timer.cancel()
            if watcher is not None:
                watcher.cancel()


def make_app(
    settings: Settings,
    threads: int,
    max_queued_tokens: int,
    tokens_per_batch: int = TOKENS_PER_BATCH,
    workers: int = 1,
    updates: SharedFailures | None = None,
    *,
    verify: bool = False,
) -> ServerApp:
    """Return the app over the bundle of these settings. Raises the same errors as load and create_app.

    `threads` run the model; the next two are the maximum tokens of the queue and of a batch. `workers` processes will
    run the app. `updates` are those of the index, if a process makes them. With `verify`, the files of a folder's
    bundle are compared with their SHA-256s; those from S3 always are.
    """
    stopwatch = Stopwatch()
    reloader: Reloader
    if settings.bundle_url:
        from semsearch.app.reloading.s3 import BundleReloader

        reloader = published = BundleReloader(settings, os.environ, by_requests=False)
        published.fetch()
        stopwatch.lap("fetch")
        bundle = published.load()
    else:
        reloader = FolderReloader(settings.bundle_dir, verify=verify)
        bundle = reloader.load()
    bundle.open_all()
    stopwatch.lap("load")
    metrics, log = Metrics(workers, updates), make_logger(settings)
    reloader.on_change = metrics.set_bundle
    if updates is not None:
        reloader.more_info = lambda: {"update_failures": updates.failures, "update_error": updates.error}
        reloader.since = lambda: Since(updates.waiting or None, HIDDEN_ERROR if updates.error else "")
    cold_start = ColdStart(lambda phases: log.info("start", extra={"milliseconds": phases}))
    cold_start.end(stopwatch.phases)
    executor = BatchingExecutor(bundle.embedder, threads, max_queued_tokens, tokens_per_batch, metrics)
    admission = partial(Admission, executor=executor)
    app = create_app(bundle, settings, log, cold_start, executor, reloader, admission)
    if app.stored_keys is not None:
        metrics.keys = app.stored_keys.failures
    metrics.filters = app.filters
    metrics.add_route(app.fastapi)  # makes it now: a server has the time, and its workers share what that imports
    cold_start.report(cold_start.take())  # at once, because no request waited for this start
    return ServerApp(app, metrics, reloader, app.keys, log, workers)
