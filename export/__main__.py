"""python -m export."""

import signal
import sys
from types import FrameType

from export.cli import main


def stop(number: int, frame: FrameType | None) -> None:
    """End as an error would, so that what is half written is removed."""
    raise SystemExit(128 + number)


signal.signal(signal.SIGTERM, stop)
sys.exit(main())
