"""How a process ended."""

import signal
from contextlib import suppress


def how_it_ended(code: int | None) -> str:
    """Return how a child process ended, by its exit code: a signal is named."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by the signal {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
