"""Run the command line of `python -m export`."""

import signal
import sys
from types import FrameType

received: list[int] = []


def stop(number: int, frame: FrameType | None) -> None:
    """End the command by an exception, so that unfinished files are removed."""
    received.append(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


signal.signal(signal.SIGTERM, stop)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background job ignores the signal
    signal.signal(signal.SIGINT, stop)
try:
    from export.cli import main
    from export.terminal import prepare_streams

    prepare_streams()
    code: int | str = main()
except (ImportError, KeyboardInterrupt) as error:
    if received:
        # a compiled module that was being imported turns the exception into an error of its own
        code = 128 + received[0]
    elif isinstance(error, ImportError):
        from export.packages import explain_import

        code = f"error: {explain_import(error)}"
    else:
        raise
sys.exit(code)
