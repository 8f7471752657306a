"""Decide when to poll S3 for a newer bundle: at a minimum interval, in a thread, and never twice at the same time."""

import math
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic

SECONDS_TO_STOP = 2.0  # time for an aborted poll to remove what it has written


class Polls:
    """The polls of a process, started by its requests or by a thread of their own."""

    def __init__(self, poll: Callable[[], None], seconds: float) -> None:
        """Call `poll` with at least `seconds` between two calls. The first one is due `seconds` from now."""
        self._poll = poll
        self._seconds = seconds
        self._one = Lock()
        self._last = monotonic()
        self._is_stopped = Event()
        self._thread: Thread | None = None

    def run(self) -> None:
        """Poll now, unless another thread polls."""
        if not self._one.acquire(blocking=False):
            return
        try:
            self._poll()
        finally:
            self._last = monotonic()
            self._one.release()

    def start_if_due(self) -> None:
        """Start a poll in a thread if one is due and none is running."""
        if monotonic() - self._last >= self._seconds and not self._one.locked():
            self._last = monotonic()
            Thread(target=self.run, name="poll", daemon=True).start()

    def make_due(self) -> None:
        """Let the next `start_if_due` start a poll."""
        self._last = -math.inf

    def start_forever(self) -> None:
        """Start a thread that polls at once, and then at each interval until `stop`."""

        def run() -> None:
            self.run()
            while not self._is_stopped.wait(self._seconds):
                self.run()

        self._thread = Thread(target=run, name="poll", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start no more polls, and wait up to SECONDS_TO_STOP for a running one."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join(SECONDS_TO_STOP)
