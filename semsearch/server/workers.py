"""granian over sockets that are bound here: its workers are forked, so they share the memory of the loaded bundle."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer, WorkerProcess

from semsearch.app.exit_codes import how_it_ended
from semsearch.app.http import ASGIApp
from semsearch.server.asgi import STOPPING, ServerApp

# macOS's own libraries, which those for Python use there, start threads and fail in a process that was forked:
# https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
CAN_FORK = sys.platform == "linux"
BACKLOG = 2048  # connections that wait until a worker accepts them
HEAD_BYTES = 65_536  # maximum size of a request's head
SECONDS_TO_STOP = 25  # after SIGTERM, workers that still run are killed; Kubernetes kills the main process after 30
SECONDS_TO_LEAVE = 1.0  # when the server stops: time for callers to close the connections that they keep


class Workers(MPServer):
    """A granian server with a listening socket for each worker.

    The sockets are made here, so that a connection that waits for a worker that dies goes to the next one, a port that
    is taken is found before the bundle is loaded, and connections are accepted as soon as the address is printed.
    granian would let each worker bind a socket of its own.
    """

    def __init__(
        self, app: ServerApp, listeners: Sequence[socket.socket], max_connections: int, idle_timeout: int
    ) -> None:
        """Take a listening socket for each worker, and the seconds after which an idle connection is closed."""
        super().__init__(
            "semantic search",
            interface=Interfaces.ASGI,
            workers=len(listeners),
            loop=Loops.uvloop,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(idle_timeout * 1_000, max_buffer_size=HEAD_BYTES),
            websockets=False,
            backlog=BACKLOG,
            backpressure=max_connections,
            log_level=LogLevels.warning,
            # on standard error, because standard output has the lines of requests in JSON
            log_dictconfig={"handlers": {key: {"class": "logging.StreamHandler"} for key in ("console", "access")}},
            respawn_failed_workers=True,
            workers_kill_timeout=SECONDS_TO_STOP,
        )
        self._app = app
        app.watch_connections(listeners[0].getsockname()[1], max_connections)
        self._listeners = listeners
        self._latest: dict[int, WorkerProcess] = {}

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C, and finish the requests. Raises SystemExit if a worker keeps dying."""
        for listener in self._listeners:
            # So that connections of a former server, which the system keeps for a minute, do not keep the port. Only
            # now: before it listens, a socket with this option would share its port with another server.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
            listener.listen(BACKLOG)
        signal.signal(STOPPING, signal.SIG_IGN)  # a worker heeds no signal until it serves
        self.serve(target_loader=lambda: self._app, wrap_loader=False)

    def startup(self, spawn_target: Any, target_loader: Any) -> None:
        """Start the workers and print the address."""
        super().startup(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        host, port = self._listeners[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"running on {address} (Ctrl-C stops it)", file=sys.stderr)

    def signal_handler_interrupt(self, *arguments: object) -> None:
        """Stop the server. A worker that was just forked has this handler too, until it serves: it ends at once."""
        if os.getpid() != self.pid:
            os._exit(0)
        super().signal_handler_interrupt(*arguments)  # type: ignore[no-untyped-call]

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        """Let each worker look for a new bundle and read the API keys again, which SIGHUP asks for."""
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        for worker in self.wrks:
            with suppress(ProcessLookupError):  # it has just died
                os.kill(worker.inner.pid, signal.SIGHUP)
        if self.interrupt_signal or self.interrupt_children:  # they came while the event was cleared
            self.main_loop_interrupt.set()

    def _init_shared_socket(self) -> None:
        self._sso = None

    def _drop_shared_socket(self) -> None:
        for listener in self._listeners:
            listener.close()

    def _stop_workers(self) -> None:
        """Let the workers add `connection: close` to their replies for a while, then let them finish their requests."""
        for worker in self.wrks:
            worker.interrupt_by_parent = True  # it may end by itself from now on
            with suppress(ProcessLookupError):  # it has just died
                os.kill(worker.inner.pid, STOPPING)
        time.sleep(SECONDS_TO_LEAVE)
        for worker in self.wrks:
            worker.terminate()  # type: ignore[no-untyped-call]
        # granian kills workers that seem to run a millisecond after their end, but the thread that waits for a worker
        # can be late
        end = time.monotonic() + SECONDS_TO_STOP
        while any(worker.is_alive() for worker in self.wrks) and time.monotonic() < end:  # type: ignore[no-untyped-call]
            time.sleep(0.02)
        self.workers_kill_timeout = 1  # second, for those that still run
        super()._stop_workers()  # type: ignore[no-untyped-call]

    def _spawn_worker(  # type: ignore[override]  # as in granian
        self, idx: int, target: Any, callback_loader: Callable[[], ASGIApp]
    ) -> WorkerProcess:
        if idx in self._latest:
            _report_end(idx, self._latest[idx].inner)
        self._shd = SocketHolder(self._listeners[idx].fileno(), False, BACKLOG)  # type: ignore
        self._latest[idx] = super()._spawn_worker(idx, target, partial(self._begin, idx))
        return self._latest[idx]

    def _begin(self, number: int) -> ASGIApp:
        """Prepare a worker, in its process, which ends with the main process. Ctrl-C reaches only the main process."""
        os.setpgid(0, 0)
        threading.Thread(target=self._end_with_main_process, daemon=True).start()
        for other, listener in enumerate(self._listeners):
            if other != number:
                listener.close()
        self._app.begin(number)
        return self._app

    def _end_with_main_process(self) -> None:
        while True:  # a signal that comes before the worker serves is lost
            time.sleep(1.0)
            if os.getppid() != self.pid:
                os.kill(os.getpid(), signal.SIGTERM)


class OneProcess(Workers):
    """The same server without workers, in this process, for a system where none can be forked.

    It ends when SIGTERM or Ctrl-C comes and the requests are answered, however long they take.
    """

    def _spawn_workers(self, spawn_target: Any, target_loader: Any) -> None:
        self._only = self._spawn_worker(0, spawn_target, target_loader)

    def _begin(self, number: int) -> ASGIApp:
        self._app.begin(number)
        return self._app

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        self._only.inner.run()  # what its process would do

    def _drop_shared_socket(self) -> None:
        """Forget the socket: what has served in this process has closed it."""
        self._listeners[0].detach()

    def _stop_workers(self) -> None:
        """Do nothing: the only worker has ended."""


def _report_end(number: int, process: BaseProcess) -> None:
    """Say why a worker ended that is replaced: granian says only that it did."""
    process.join()
    print(f"worker-{number + 1} (process {process.pid}) {how_it_ended(process.exitcode)}", file=sys.stderr)


def bind(host: str, port: int, count: int) -> list[socket.socket]:
    """Return sockets that are bound to one address and do not listen yet; port 0 takes one that is free.

    The kernel spreads connections over them. Raises OSError if the host is unknown, is not this machine, or the port is
    taken.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]

    def bound(option: int, address: tuple[Any, ...]) -> socket.socket:
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
        return listener

    # SO_REUSEADDR lets a server start again at once after a stop, and still refuses a port that another server uses
    only = bound(socket.SO_REUSEADDR, address)
    if count == 1:
        return [only]
    with only:
        found = only.getsockname()
    return [bound(socket.SO_REUSEPORT, found) for _ in range(count)]
