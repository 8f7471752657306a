"""Run the command line of `python -m export`."""

import signal
import sys
from types import FrameType

from export.cli import main

received: list[int] = []


def stop(number: int, frame: FrameType | None) -> None:
    """Exit by an exception on SIGTERM, so that unfinished files are removed."""
    received.append(number)
    raise SystemExit(128 + number)


signal.signal(signal.SIGTERM, stop)
try:
    code = main()
except ImportError:
    if not received:
        raise
    code = 128 + received[0]  # a compiled module that was being imported turns the exit into an error of its own
sys.exit(code)
