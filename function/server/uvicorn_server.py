"""The app over an open bundle, served by uvicorn in this process."""

import asyncio
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from functools import partial

import uvicorn

from function.app import create_app
from function.engine.bundle import BundleError
from function.engine.embedder import TOKENS_PER_BATCH
from function.engine.loading import LoadedTexts, load
from function.engine.tensors import TensorsError
from function.server.admission import Admission
from function.server.batching import BatchingExecutor
from function.server.disconnect import CancelOnDisconnect
from function.server.http_protocol import HttpProtocol
from function.server.limits import LargeBodies, Limits
from function.server.metrics import CountingLog, Metrics
from function.server.workers import SECONDS_TO_STOP, SIGNALS, Beat
from function.settings import Settings
from function.startup import ColdStart
from function.telemetry import Stopwatch, make_logger

SECONDS_TO_LEAVE = 1.0  # when the server stops: time for callers to close the connections that they keep
SECONDS_TO_ACCEPT = 0.1  # when the server stops: time to accept the connections that wait
SECONDS_BETWEEN_BEATS = 1.0  # time between two beats while a worker is prepared
SECONDS_TO_FINISH = SECONDS_TO_STOP - 3  # when the server stops: time for requests, after the two times above
TICKS_BETWEEN_CHECKS = 10  # ticks between two checks for slow connections; uvicorn's main loop has ten ticks a second


@dataclass(frozen=True, slots=True)
class Batching:
    """How a process embeds: threads with the model, maximum tokens that wait for one, and tokens of one batch."""

    threads: int
    max_queued_tokens: int
    tokens_per_batch: int = TOKENS_PER_BATCH


def make_app(settings: Settings, batching: Batching, is_shared: bool = False) -> CancelOnDisconnect:
    """Return the app over the bundle of these settings. Raises the same errors as load and create_app.

    is_shared: several workers count in the same files.
    """
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
    metrics = Metrics(is_shared)
    log = CountingLog(make_logger(settings), metrics)
    cold_start = ColdStart(lambda phases: log.info("start", extra={"milliseconds": phases}))
    cold_start.end(stopwatch.phases)
    executor = BatchingExecutor(
        bundle.embedder, batching.threads, batching.max_queued_tokens, batching.tokens_per_batch, metrics
    )
    admission = partial(Admission, executor=executor)
    app = create_app(bundle, settings, log, cold_start, executor, reloader, admission)
    metrics.add_route(app.fastapi)  # makes it now: a server has the time, and its workers share what that imports
    cold_start.report(cold_start.take())  # at once, because no request waited for this start
    if reloader is None:
        return CancelOnDisconnect(app, metrics.count_left)
    return CancelOnDisconnect(app, metrics.count_left, reloader.catch_up, reloader.polls.start_forever, reloader.stop)


def serve(
    app: CancelOnDisconnect,
    limits: Limits,
    listener: socket.socket,
    is_first: bool = True,
    is_alive: int | None = None,
    beat: Beat = lambda: None,
) -> None:
    """Answer requests on a socket until SIGTERM or Ctrl-C.

    Then answer all accepted requests and raise KeyboardInterrupt. The first worker prints the address. Only workers
    have is_alive, a file that ends with the main process; then the server stops too. The event loop calls `beat` ten
    times a second. Raises SystemExit if a worker cannot open the bundle that the others serve.
    """
    if is_alive is not None:
        _prepare(app, beat)
    large_bodies = LargeBodies()
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=partial(HttpProtocol, limits=limits, large_bodies=large_bodies),  # type: ignore[arg-type] # uvicorn calls it
        ws="none",
        proxy_headers=False,  # the app does not read them
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )
    try:
        _Server(config, app, large_bodies, is_first, is_alive, beat).run([listener])
    finally:
        app.stop()


def _prepare(app: CancelOnDisconnect, beat: Beat) -> None:
    """Prepare a worker, which can take the time to fetch a bundle. A thread calls `beat`; a signal ends the worker."""
    handlers = {each: signal.signal(each, signal.SIG_DFL) for each in SIGNALS}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    is_ready = threading.Event()

    def beat_until_ready() -> None:
        while not is_ready.wait(SECONDS_BETWEEN_BEATS):
            beat()

    beating = threading.Thread(target=beat_until_ready)
    beating.start()
    try:
        app.prepare()
    except (BundleError, TensorsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    finally:
        is_ready.set()
        beating.join()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for each, handler in handlers.items():
            signal.signal(each, handler)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        app: CancelOnDisconnect,
        large_bodies: LargeBodies,
        is_first: bool,
        is_alive: int | None,
        beat: Beat,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._large_bodies = large_bodies
        self._is_first = is_first
        self._is_alive = is_alive
        self._beat = beat

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then print the address."""
        signal.pthread_sigmask(
            signal.SIG_UNBLOCK, SIGNALS
        )  # uvicorn handles them now; a worker starts with them blocked
        await super().startup(sockets)
        self._app.start()
        if self._is_alive is not None:
            asyncio.get_running_loop().add_reader(self._is_alive, self._stop)
        if self._is_first:
            assert sockets is not None
            host, port = sockets[0].getsockname()[:2]
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            # not earlier: now connections are accepted, and uvicorn handles Ctrl-C
            print(f"running on {address} (Ctrl-C stops it)", file=sys.stderr)

    async def on_tick(self, counter: int) -> bool:
        """Send a beat to the main process and check the connections. uvicorn calls this ten times a second."""
        self._beat()
        if counter % TICKS_BETWEEN_CHECKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                assert isinstance(connection, HttpProtocol)
                connection.check(now)
            self._large_bodies.trim()
        return await super().on_tick(counter)

    def _stop(self) -> None:
        assert self._is_alive is not None
        asyncio.get_running_loop().remove_reader(self._is_alive)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Add `connection: close` to further replies, then stop accepting connections and finish all requests.

        Connections that wait to be accepted can have sent requests already. If the socket were closed at once, the
        system would reset them.
        """
        self._app.is_stopping = True
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS_TO_LEAVE
        await asyncio.sleep(SECONDS_TO_ACCEPT)
        while self.server_state.connections and loop.time() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)
