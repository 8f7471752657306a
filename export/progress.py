"""Show the progress of an export: bars on a terminal, plain lines in a file or a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0  # at least, except for the line at the end of a step


class ShowProgress(Protocol):
    """A function that a long step calls with its progress."""

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Show that this share of the step is done, 0 (it begins) to 1 (it ends).

        texts is the number of texts embedded so far, 0 in a step that embeds none.
        """


def no_progress(step: str, share: float, texts: int = 0) -> None:
    """Show nothing."""


@contextmanager
def showing_progress(console: Console) -> Iterator[ShowProgress]:
    """Yield a function that shows progress on this console until the block ends."""
    if not (console.is_interactive and console.file.isatty()):
        yield ProgressLines(console)
        return
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(elapsed_when_finished=True),
        _TextsPerSecond(),
    )
    with Progress(*columns, console=console) as progress:
        yield _ProgressBars(progress)


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


class _ProgressBars:
    """A bar for each step; it swings until the step reports a share."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(step, total=None, texts=0)
        if share > 0:
            self._progress.update(self._tasks[step], total=1.0, completed=share, texts=texts)


class _TextsPerSecond(ProgressColumn):
    """The speed of a step that embeds texts."""

    def render(self, task: Task) -> Text:
        """Return the speed, empty while there is none."""
        texts = task.fields["texts"]
        seconds = task.finished_time if task.finished else task.elapsed
        return Text(f"{texts / seconds:,.0f} texts/s" if texts and seconds else "")
