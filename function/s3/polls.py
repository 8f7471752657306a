"""When S3 is asked for a newer bundle: at most every so many seconds, in a thread, and never twice at once."""

import math
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic


class Polls:
    """The polls of a process, started by its requests or by a thread of their own."""

    def __init__(self, poll: Callable[[], None], seconds: float) -> None:
        """Call `poll`, at most every so many seconds. The first is due that long after now."""
        self._poll = poll
        self._seconds = seconds
        self._one = Lock()
        self._last = monotonic()

    def run(self) -> None:
        """Poll now, unless another thread does."""
        if not self._one.acquire(blocking=False):
            return
        try:
            self._poll()
        finally:
            self._last = monotonic()
            self._one.release()

    def start_if_due(self) -> None:
        """Start a poll in a thread, unless the last one was not long ago or is still running."""
        if monotonic() - self._last >= self._seconds and not self._one.locked():
            self._last = monotonic()
            Thread(target=self.run, name="poll", daemon=True).start()

    def make_due(self) -> None:
        """Let the next `start_if_due` start a poll."""
        self._last = -math.inf

    def start_forever(self) -> None:
        """Start a thread that polls until the process ends."""

        def run() -> None:
            pause = Event()
            while not pause.wait(self._seconds):
                self.run()

        Thread(target=run, name="poll", daemon=True).start()
