"""The errors that are no bugs: a command prints their message in one line, without a trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_in_command = ContextVar("_in_command", default=False)


class ExpectedError(Exception):
    """An error that its reader can repair: the message says where, what was found, what was expected and what to do."""


class OptionError(ExpectedError, ValueError):
    """An argument of a Python function, or an option of a command, has a wrong value or no effect."""

    def __init__(self, name: str, message: str) -> None:
        """Take the argument's name in Python, and what is wrong with it."""
        super().__init__(f"{name}: {message}")
        self.name: str = name
        self.message: str = message

    def on_command_line(self) -> str:
        """Return the message with the option as a command line has it, such as --text-column."""
        return f"--{self.name.replace('_', '-')}: {self.message}"


@contextmanager
def naming_options() -> Iterator[None]:
    """Let the messages of the block name options, such as --text-column: a command runs it."""
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


def are_options_named() -> bool:
    """Return whether messages name options, and not the arguments of Python."""
    return _in_command.get()


class BackendError(ExpectedError, RuntimeError):
    """The service that holds the texts failed; the message has its own error.

    `seconds` is how long to wait before the next request if the service limits their rate, None for other errors.
    """

    def __init__(self, message: str, seconds: int | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
