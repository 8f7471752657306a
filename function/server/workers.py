"""Several processes that answer on one address, made by fork: what was loaded before is in memory once."""

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

# serves on a socket until SIGTERM; takes whether it is the first worker, and a file that ends with the main process.
# SIGNALS are blocked until it unblocks them: one that raised KeyboardInterrupt while it starts could be lost
Serve = Callable[[socket.socket, bool, int], None]

SECONDS_BETWEEN_STARTS = 1.0  # of the same worker, if it dies again and again
BACKLOG = 2048  # connections that wait until a worker accepts them; uvicorn's default
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_workers(listeners: Sequence[socket.socket], serve: Serve, report_end: Callable[[int], None]) -> None:
    """Fork a worker for each socket, replace each that dies, and return when all have ended after SIGTERM or Ctrl-C.

    report_end takes the process id of a worker that has ended. The sockets stay open here, so connections wait for the
    worker that replaces a dead one.
    """
    numbers: dict[int, int] = {}  # workers by process id
    started = [float("-inf")] * len(listeners)
    is_stopping = False
    is_alive, alive = os.pipe()  # nothing is ever written to it

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopping
        is_stopping = True
        for listener in listeners:
            listener.close()
        for process in numbers:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(process, signal.SIGTERM)

    def start(number: int) -> None:
        time.sleep(max(0.0, started[number] + SECONDS_BETWEEN_STARTS - time.monotonic()))
        started[number] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until `stop` knows of the worker
        if not is_stopping:
            process = os.fork()
            if not process:
                os.close(alive)
                _work(number, listeners, serve, is_alive)
            numbers[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    for listener in listeners:
        listener.listen(BACKLOG)  # now, so that all sockets get their share of the first connections
    former = {each: signal.signal(each, stop) for each in SIGNALS}
    try:
        for number in range(len(listeners)):
            start(number)
        while numbers:
            process, _ = os.wait()
            number = numbers.pop(process)
            report_end(process)
            if not is_stopping:
                start(number)
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
        os.close(is_alive)
        os.close(alive)


def _work(number: int, listeners: Sequence[socket.socket], serve: Serve, is_alive: int) -> NoReturn:
    """Serve in a process that was just forked, and end it."""
    code = 1
    try:
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler)  # what uvicorn ends with
        for other, listener in enumerate(listeners):
            if other != number:
                listener.close()
        serve(listeners[number], number == 0, is_alive)
    except KeyboardInterrupt:
        code = 0
    except Exception:  # noqa: BLE001  the main process starts another worker
        traceback.print_exc()
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
