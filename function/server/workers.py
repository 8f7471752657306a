"""Several worker processes on one address. They are forked, so they share the memory of the loaded bundle."""

import mmap
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

Beat = Callable[[], None]
# Serves on a socket until SIGTERM. The other arguments are whether it is the first worker, a file that ends with the
# main process, and a function to call at least once a second. SIGNALS are blocked until it unblocks them, because a
# KeyboardInterrupt during its start could be lost.
Serve = Callable[[socket.socket, bool, int, Beat], None]

SECONDS_BETWEEN_STARTS = 1.0  # minimum time between two starts of the same worker
SECONDS_TO_STOP = 25  # after SIGTERM, workers that still run are killed; Kubernetes kills the main process after 30
SECONDS_BETWEEN_CHECKS = 1.0
CHECKS_IF_STOPPED = 3  # number of checks without a beat after which a stopped worker (SIGSTOP) is replaced
# The same for a worker that runs. Its event loop can be blocked for a good reason, for example while an index is read
# from a slow disk. gunicorn waits equally long.
CHECKS_IF_RUNNING = 30
BACKLOG = 2048  # connections that wait until a worker accepts them; uvicorn's default
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_workers(listeners: Sequence[socket.socket], serve: Serve, report_end: Callable[[int], None]) -> None:
    """Fork a worker for each socket, replace each that dies, and return when all have ended after SIGTERM or Ctrl-C.

    report_end gets the process id of each worker that has ended. The sockets stay open here, so connections wait for
    the worker that replaces a dead one. A worker without beats is killed.
    """
    numbers: dict[int, int] = {}  # workers by process id
    started = [float("-inf")] * len(listeners)
    stopped_at = float("inf")  # by time.monotonic
    is_alive, alive = os.pipe()  # nothing is ever written to it
    beats = memoryview(mmap.mmap(-1, 8 * len(listeners))).cast("Q")  # each worker counts its own; the memory is shared
    seen, missed = [0] * len(listeners), [0] * len(listeners)

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped_at
        stopped_at = min(stopped_at, time.monotonic())
        for listener in listeners:
            listener.close()
        for process in numbers:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(process, signal.SIGTERM)

    def is_stopping() -> bool:
        return stopped_at < float("inf")

    def start(number: int) -> None:
        time.sleep(max(0.0, started[number] + SECONDS_BETWEEN_STARTS - time.monotonic()))
        started[number] = time.monotonic()
        missed[number] = 0
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until `stop` knows of the worker
        if not is_stopping():
            process = os.fork()
            if not process:
                os.close(alive)

                def beat() -> None:
                    beats[number] += 1

                _work(number, listeners, serve, is_alive, beat)
            numbers[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def check(process: int, number: int) -> None:
        """Kill a worker that does not react. Checks are counted, not seconds, since this process can be stopped too."""
        missed[number] = missed[number] + 1 if beats[number] == seen[number] else 0
        seen[number] = beats[number]
        if time.monotonic() > stopped_at + SECONDS_TO_STOP - SECONDS_BETWEEN_CHECKS:
            os.kill(process, signal.SIGKILL)
        elif missed[number] >= CHECKS_IF_STOPPED and (missed[number] >= CHECKS_IF_RUNNING or _is_stopped(process)):
            expected = "expected one each second; it is killed"
            print(f"worker {process}: no sign of life in {missed[number]} checks, {expected}", file=sys.stderr)
            os.kill(process, signal.SIGKILL)
            missed[number] = 0

    for listener in listeners:
        # So that connections of a former server, which the system keeps for a minute, do not keep the port. Only now:
        # before it listens, a socket with this option would share its port with another server.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen(BACKLOG)  # now, so that all sockets get their share of the first connections
    former = {each: signal.signal(each, stop) for each in SIGNALS}
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # for sigtimedwait
    checked = time.monotonic()
    try:
        for number in range(len(listeners)):
            start(number)
        while numbers:
            signal.sigtimedwait([signal.SIGCHLD], SECONDS_BETWEEN_CHECKS)
            is_due = time.monotonic() >= checked + SECONDS_BETWEEN_CHECKS
            if is_due:
                checked = time.monotonic()
            for process, number in list(numbers.items()):
                if os.waitpid(process, os.WNOHANG)[0]:
                    del numbers[process]
                    report_end(process)
                    if not is_stopping():
                        start(number)
                elif is_due:
                    check(process, number)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for each, handler in former.items():
            signal.signal(each, handler)
        os.close(is_alive)
        os.close(alive)


def _is_stopped(process: int) -> bool:
    """Return whether a process was stopped by a signal; not by a debugger."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _work(number: int, listeners: Sequence[socket.socket], serve: Serve, is_alive: int, beat: Beat) -> NoReturn:
    """Serve in a process that was just forked, and end it."""
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler)  # what uvicorn ends with
        for other, listener in enumerate(listeners):
            if other != number:
                listener.close()
        serve(listeners[number], number == 0, is_alive, beat)
    except KeyboardInterrupt:
        code = 0
    except Exception:  # noqa: BLE001  the main process starts another worker
        traceback.print_exc()
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
