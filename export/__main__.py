"""Run the command line of `python -m export`."""

import signal
import sys
from types import FrameType

from export.cli import main


def stop(number: int, frame: FrameType | None) -> None:
    """Exit by an exception on SIGTERM, so that unfinished files are removed."""
    raise SystemExit(128 + number)


signal.signal(signal.SIGTERM, stop)
sys.exit(main())
