"""What `python -m export` prints: any stream takes it, no terminal obeys it, and errors of standard output say so."""

import io
import os
import sys
from typing import Any

from rich.console import Console

from export.files.disk_errors import DiskError

NO_READER = 141  # the exit code in a shell of a command that SIGPIPE ends
_OVERRIDES = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # change the direction of the characters after them
VISIBLE = (
    {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
    | {code: f"\\u{code:04x}" for code in _OVERRIDES}
    | {ord("\n"): "\n", ord("\t"): " "}
)


class TerminalConsole(Console):
    """A console that displays control characters of names and ids as escapes such as \\x1b."""

    def __init__(self, *, stderr: bool = False) -> None:
        """Print on standard output, or on standard error."""
        super().__init__(highlight=False, soft_wrap=True, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Any:
        """Return a string, also one in a table, as rich displays it."""
        return super().render_str(text.translate(VISIBLE), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does. Raises DiskError if the stream cannot be written."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            self._write_no_more()
            name = "standard error" if self.stderr else "standard output"
            advice = "expected a file or a terminal that takes all output; choose another"
            raise DiskError(f"{name}: {error.strerror}; {advice}") from error

    def on_broken_pipe(self) -> None:
        """End the command because nobody reads what it prints. Raises SystemExit."""
        self._write_no_more()
        raise SystemExit(NO_READER)

    def _write_no_more(self) -> None:
        """Discard all further output, since what is still in a buffer would fail again when Python ends."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def prepare_streams() -> None:
    """Let standard output take all characters, and open the null device in place of closed streams.

    Files of the bundle would take the numbers of closed streams, and the output of libraries would go into them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    if isinstance(sys.stdout, io.TextIOWrapper):  # None if it was closed
        sys.stdout.reconfigure(errors="backslashreplace")
