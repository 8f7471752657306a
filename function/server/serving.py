"""The app over an open bundle, served by uvicorn in this process."""

import asyncio
import signal
import socket
import sys
from dataclasses import dataclass

import uvicorn
from starlette.middleware import Middleware

from function.app import create_app
from function.engine.embedder import TOKENS_PER_BATCH
from function.engine.loading import LoadedBundle, load
from function.routes.late import add_late_routes
from function.server.admission import Admission
from function.server.batching import BatchedExecution
from function.server.callers import CallerWatch
from function.server.http_protocol import HttpProtocol
from function.server.metrics import CountingLog, Metrics
from function.server.workers import SIGNALS
from function.settings import Settings
from function.startup import ColdStart
from function.telemetry import Stopwatch, make_logger

SECONDS_TO_LEAVE = 1.0  # for callers that keep a connection, so that they are told before it is closed
SECONDS_TO_ACCEPT = 0.1  # what waits to be accepted when the server stops
SECONDS_TO_FINISH = 25  # for requests when the server stops; Kubernetes kills it after 30


@dataclass(frozen=True, slots=True)
class Batching:
    """How a process embeds: threads with the model, tokens that may wait for one, and tokens of one batch."""

    threads: int
    max_queued_tokens: int
    tokens_per_batch: int = TOKENS_PER_BATCH


def make_app(settings: Settings, batching: Batching, is_shared: bool = False) -> CallerWatch:
    """Return the app over the bundle of these settings.

    is_shared tells that other workers count in the same files. Raises what load and create_app raise.
    """
    stopwatch = Stopwatch()
    switch = None
    if settings.bundle_url:
        from function.s3.start import make_switch

        switch = make_switch(settings, by_requests=False)
        switch.fetch()
        stopwatch.lap("fetch")
    bundle = load(settings.bundle_dir) if switch is None else switch.load()
    if isinstance(bundle, LoadedBundle):
        bundle.open_all()
    stopwatch.lap("load")
    metrics = Metrics(is_shared)
    log = CountingLog(make_logger(settings), metrics)
    cold_start = ColdStart(lambda phases: log.info("start", extra={"milliseconds": phases}))
    cold_start.end(stopwatch.phases)
    execution = BatchedExecution(
        bundle.embedder,
        batching.threads,
        batching.max_queued_tokens,
        batching.tokens_per_batch,
        metrics,
    )
    app = create_app(bundle, settings, log, cold_start, execution, switch)
    # just outside RequestLimits, which is the innermost and keeps a whole body in memory
    app.user_middleware.insert(-1, Middleware(Admission, execution=execution))
    add_late_routes(app)
    metrics.add_route(app)
    cold_start.report(cold_start.take())  # now: no request waited for this start
    return CallerWatch(app, metrics.count_left, None if switch is None else switch.poll_forever)


def serve(app: CallerWatch, listener: socket.socket, is_first: bool = True, is_alive: int | None = None) -> None:
    """Answer on a socket until SIGTERM or Ctrl-C, then raise KeyboardInterrupt once all that was accepted is answered.

    The first worker prints the address. is_alive is a file whose end stops the server too.
    """
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=HttpProtocol,
        ws="none",
        proxy_headers=False,  # nobody reads them
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )
    _Server(config, app, is_first, is_alive).run([listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: CallerWatch, is_first: bool, is_alive: int | None) -> None:
        super().__init__(config)
        self._app = app
        self._is_first = is_first
        self._is_alive = is_alive

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then say so."""
        signal.pthread_sigmask(
            signal.SIG_UNBLOCK, SIGNALS
        )  # a worker starts with them blocked; uvicorn handles them now
        await super().startup(sockets)
        self._app.start()
        if self._is_alive is not None:
            asyncio.get_running_loop().add_reader(self._is_alive, self._stop)
        if self._is_first:
            assert sockets is not None
            host, port = sockets[0].getsockname()[:2]
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            # only now are connections accepted, and Ctrl-C handled by uvicorn
            print(f"running on {address} (Ctrl-C stops it)", file=sys.stderr)

    def _stop(self) -> None:
        assert self._is_alive is not None
        asyncio.get_running_loop().remove_reader(self._is_alive)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell callers with their next reply to close their connections, accept no more, and finish what was asked.

        Connections that wait to be accepted may carry requests already; the system would reset them at once.
        """
        self._app.is_stopping = True
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS_TO_LEAVE
        await asyncio.sleep(SECONDS_TO_ACCEPT)
        while self.server_state.connections and loop.time() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)
