"""Standard streams, signals, exit codes and text that is safe to display, for all commands.

Imports little, so that Ctrl-C is handled during the other imports.
"""

import io
import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType

FAILED, UNUSABLE = 1, 2
INTERRUPTED, NO_READER = 130, 141  # what a shell reports for SIGINT and SIGPIPE

# Control characters can do anything to a terminal, bidirectional overrides reorder what it displays, and half a
# surrogate pair cannot be encoded.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text in one line that cannot control a terminal: blanks for white space, escapes such as \x1b."""
    return UNSAFE.sub(_replacement, text)


def _replacement(unsafe: re.Match[str]) -> str:
    code = ord(unsafe[0])
    if unsafe[0].isspace():
        return " "
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}"


def fail(error: object) -> int:
    """Print an error in one line on standard error, and return the exit code of a command that failed."""
    sys.stderr.write(f"error: {visible(str(error))}\n")
    return FAILED


def run(
    command: Callable[[], int], encoding: str | None = None, explain_import: Callable[[ImportError], str] | None = None
) -> int:
    """Run a command and return its exit code, also if a signal ends it or a standard stream cannot be used.

    Ctrl-C raises KeyboardInterrupt in the command, and SIGTERM raises SystemExit, so that it can clean up. Standard
    output has this encoding, or else the terminal's. explain_import returns the message for a missing package.
    """
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background job ignores the signal
        signal.signal(signal.SIGINT, stop)
    try:
        code = command()
        sys.stdout.flush()
    except SystemExit as stopped:
        if isinstance(stopped.code, int):
            return stopped.code
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except ImportError as error:
        if received:
            return 128 + received[0]  # a compiled module that was being imported replaces the exception by its own
        if explain_import is None:
            raise
        return fail(explain_import(error))
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what Python still writes when it ends
        if isinstance(error, BrokenPipeError):  # from `| head`; SIGPIPE ends other programs silently
            return NO_READER
        return fail(f"{error.filename or 'standard output'}: {error.strerror or error}")
    return code


def _open_closed_streams() -> None:
    """Open the null device in place of closed streams: files that are opened later would take their numbers."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: that of the stream
            os.set_inheritable(number, True)
            way = "w"
            if name == "stdin":
                way = "r"
            setattr(sys, name, open(number, way, closefd=False))  # noqa: SIM115
