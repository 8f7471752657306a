"""Standard streams, exit codes and text that is safe to display, for the commands of `python -m function`."""

import io
import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

FAILED, INTERRUPTED, NO_READER = 1, 130, 141  # the last two are what a shell reports for SIGINT and SIGPIPE
STDOUT = "standard output"

# Control characters can do anything to a terminal, bidirectional overrides reorder what it displays, and half a
# surrogate pair cannot be encoded.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text in one line that cannot control a terminal: blanks for white space, escapes such as \x1b."""
    return UNSAFE.sub(_replacement, text)


def _replacement(unsafe: re.Match[str]) -> str:
    code = ord(unsafe[0])
    return " " if unsafe[0].isspace() else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def fail(error: object) -> int:
    """Print an error in one line on standard error, and return the exit code of a command that failed."""
    sys.stderr.write(f"error: {visible(str(error))}\n")
    return FAILED


def run(command: Callable[[], int], *, prints_results: bool) -> int:
    """Run a command and return its exit code, also if it is interrupted or a standard stream cannot be used.

    prints_results: standard output is for results, so closing it is an error. Otherwise it is a log of JSON in UTF-8.
    """
    _open_closed_streams(prints_results)
    sys.stdout = _standard_output(None if prints_results else "utf-8")
    try:
        code = _interruptible(command)
        sys.stdout.flush()
    except OSError as error:
        return _explain(error)
    return code


def _interruptible(command: Callable[[], int]) -> int:
    """Run a command that Ctrl-C or argparse can end, and return its exit code."""
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background job ignores the signal
        signal.signal(signal.SIGINT, interrupt)
    try:
        return command()
    except SystemExit as stop:  # argparse raises it with 0 or 2
        return stop.code if isinstance(stop.code, int) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except ImportError:
        if not interrupts:
            raise
        return INTERRUPTED  # a compiled module that was being imported replaces the KeyboardInterrupt


def _explain(error: OSError) -> int:
    """Report an error that no other code expected; return the exit code."""
    if error.filename == STDOUT:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what Python still writes when it ends
        if isinstance(error, BrokenPipeError):  # from `| head`; SIGPIPE ends other programs silently
            return NO_READER
        return fail(f"{STDOUT}: {error.strerror}; expected a file or a terminal that takes all output; choose another")
    where = error.filename or type(error).__name__
    return fail(f"{where}: {error.strerror or error}; expected a file that can be used; check it and its permissions")


def _open_closed_streams(prints_results: bool) -> None:
    """Open the null device in place of closed streams.

    Files and sockets that are opened later would take their numbers, and output of libraries would go into those.
    Standard input and results still fail as with a closed stream, because the device is opened in the wrong direction.
    """
    modes = {
        "stdin": os.O_WRONLY,
        "stdout": os.O_RDONLY if prints_results else os.O_WRONLY,
        "stderr": os.O_WRONLY,
    }
    for name, mode in modes.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, mode)  # the lowest number that is free: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115


class _StandardOutput(io.FileIO):
    """A file whose errors name it standard output."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            error.filename = STDOUT
            raise


def _standard_output(encoding: str | None) -> io.TextIOWrapper:
    """Return standard output, buffered as before, that can write all characters and names itself in errors."""
    former = sys.stdout
    assert isinstance(former, io.TextIOWrapper)
    raw = _StandardOutput(former.fileno(), "w", closefd=False)
    # with python -u, text is not buffered
    buffer = raw if former.write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        encoding=encoding or former.encoding,
        errors="backslashreplace",
        line_buffering=former.line_buffering,
        write_through=former.write_through,
    )
