"""Print on any stream: text that cannot control a terminal, and progress as bars on a terminal, lines elsewhere."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from export.progress import OnProgress

SECONDS_BETWEEN_LINES = 10.0  # least time between two lines, except for the one at the end of a step
NO_READER = 141  # the exit code in a shell of a command that SIGPIPE ends
_OVERRIDES = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # characters that reverse the direction of others
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
        """Print as rich does. Raises OSError with the stream's name if it cannot be written."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            self._write_no_more()
            error.filename = "standard error" if self.stderr else "standard output"
            raise

    def on_broken_pipe(self) -> None:
        """End the command, because the reader of its output has ended. Raises SystemExit."""
        self._write_no_more()
        raise SystemExit(NO_READER)

    def _write_no_more(self) -> None:
        """Discard all further output: the rest of a buffer would fail again when Python ends."""
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


@contextmanager
def showing_progress(console: Console) -> Iterator[OnProgress]:
    """Yield a function that displays progress on this console until the block ends."""
    if not (console.is_interactive and console.file.isatty()):
        yield ProgressLines(console)
        return
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[speed]}"),
    )
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, share: float, texts: int = 0) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=None, speed="")  # the bar swings until there is a share
            if share > 0:
                seconds = bars.tasks[tasks[step]].elapsed
                speed = f"{texts / seconds:,.0f} texts/s" if texts and seconds else ""
                bars.update(tasks[step], total=1.0, completed=share, speed=speed)

        yield show


class ProgressLines:
    """Prints a line when a step ends, and one at most every `interval` seconds before."""

    def __init__(
        self,
        console: Console,
        interval: float = SECONDS_BETWEEN_LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the console to print on, and a clock that counts seconds."""
        self._console = console
        self._interval = interval
        self._clock = clock
        self._began: dict[str, tuple[float, float]] = {}  # when each step began, and its share that was done already
        self._ended: set[str] = set()
        self._printed = clock()

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Print the progress of the step, unless a line was printed just before."""
        now = self._clock()
        began, taken_over = self._began.setdefault(step, (now, share))
        took = now - began
        if step in self._ended or (share < 1 and now - self._printed < self._interval):
            return
        parts = [f"{int(share * 100)}%"]  # rounded down, so that only a finished step is at 100%
        if texts and took > 0:
            parts.append(f"{texts / took:,.0f} texts/s")
        if share >= 1:
            self._ended.add(step)
            parts.append(f"took {_duration(took)}")
        elif share > taken_over:
            parts.append(f"{_duration(took * (1 - share) / (share - taken_over))} left")
        self._printed = now
        self._console.print(f"{step}: {', '.join(parts)}", markup=False)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
