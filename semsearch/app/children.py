"""How a child process ended, and failures counted in memory that processes share, so that each worker shows all."""

import mmap
import signal
from contextlib import suppress
from typing import Any

import numpy as np

ERROR_BYTES = 1_000  # maximum length of an error that is shared; the rest of a longer one is cut off


def how_it_ended(code: int | None) -> str:
    """Return how a child process ended, by its exit code: a signal is named."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by the signal {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


class SharedFailures:
    """The number of failures and the last error, in memory that a process shares with those that it forks."""

    def __init__(self) -> None:
        """Start without a failure."""
        row = np.dtype([("failures", np.int64), ("error", f"S{ERROR_BYTES}")])
        self._row: Any = np.frombuffer(mmap.mmap(-1, row.itemsize), row)[0]

    @property
    def failures(self) -> int:
        """The number of failures until now."""
        return int(self._row["failures"])

    @property
    def error(self) -> str | None:
        """The error of the last failure, None if it was followed by a success."""
        return self._row["error"].decode(errors="replace") or None

    def fail(self, error: str) -> None:
        """Count a failure."""
        self._row["failures"] += 1
        self._row["error"] = error.encode()

    def succeed(self) -> None:
        """Clear the last error."""
        self._row["error"] = b""
