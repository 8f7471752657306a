"""The callback through which a long step reports its progress, displayed as bars, or as lines.

A terminal has bars, a notebook one line that changes, and anything else a line for each step.

Imports rich only to display bars: the machines of a cluster embed without it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

WAIT = "wait for the index"  # the step in which another process writes into it
SECONDS_BETWEEN_LINES = 10.0  # least time between two lines, except for the one at the end of a step
SECONDS_BETWEEN_DISPLAYS = 0.2  # least time between two changes of the line in a notebook


class OnProgress(Protocol):
    """A function that a long step calls now and then."""

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Report that this share of the step is done, from 0 (it begins) to 1 (it ends).

        texts is the number of texts embedded so far, 0 in a step that embeds none.
        """


def no_progress(step: str, share: float, texts: int = 0) -> None:
    """Ignore the progress."""


class WaitingProgress:
    """Reports the progress of work that can begin when another process has written an index."""

    def __init__(self, on_progress: OnProgress) -> None:
        """Take the function that displays the progress."""
        self.is_waiting = False
        self._on_progress = on_progress

    def wait(self) -> None:
        """Report that the other process still writes."""
        self.is_waiting = True
        self._on_progress(WAIT, 0)

    def end(self) -> None:
        """Report that it has ended, if it was waited for."""
        if self.is_waiting:
            self.is_waiting = False
            self._on_progress(WAIT, 1)

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Report the progress of the work, whose first step ends the waiting."""
        self.end()
        self._on_progress(step, share, texts)


@contextmanager
def chosen_progress(chosen: "bool | OnProgress") -> Iterator[OnProgress]:
    """Yield the function that displays the progress of `index` as its caller has chosen.

    True displays bars on standard error, if that is a terminal, or one line in a notebook.
    """
    if not isinstance(chosen, bool):
        yield chosen
        return
    if chosen:
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_jupyter or console.file.isatty():
            with showing_progress(console) as on_progress:
                yield on_progress
            return
    yield no_progress


@contextmanager
def showing_progress(console: "Console") -> Iterator[OnProgress]:
    """Yield a function that displays progress on this console until the block ends."""
    if console.is_jupyter:
        with _notebook_line() as on_progress:
            yield on_progress
        return
    if not (console.is_interactive and console.file.isatty()):
        yield ProgressLines(console)
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

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
                speed = ""
                if texts and seconds:
                    speed = f"{texts / seconds:,.0f} texts/s"
                bars.update(tasks[step], total=1.0, completed=share, speed=speed)

        yield show


@contextmanager
def _notebook_line() -> Iterator[OnProgress]:
    """Yield a function that displays the step in one line of a notebook, which says at the end how long all took.

    rich would leave two empty outputs. A notebook cannot remove an output, so that one line stays.
    """
    from IPython.display import display

    began = shown = time.monotonic()
    line = display({"text/plain": "starting"}, raw=True, display_id=True)

    def show(step: str, share: float, texts: int = 0) -> None:
        nonlocal shown
        now = time.monotonic()
        if share in (0, 1) or now - shown >= SECONDS_BETWEEN_DISPLAYS:
            shown = now
            line.update({"text/plain": f"{step}: {int(share * 100)}%"}, raw=True)

    try:
        yield show
    finally:
        took = timedelta(seconds=round(time.monotonic() - began))
        line.update({"text/plain": f"took {took}"}, raw=True)


class ProgressLines:
    """Prints a line when a step ends, and one at most every `interval` seconds before."""

    def __init__(
        self,
        console: "Console",
        interval: float = SECONDS_BETWEEN_LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the console to print on, and a clock that counts seconds."""
        self._console = console
        self._interval = interval
        self._clock = clock
        self._began: dict[str, float] = {}  # when each step began
        self._ended: set[str] = set()
        self._printed = clock()

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Print the progress of the step, unless a line was printed just before."""
        now = self._clock()
        took = now - self._began.setdefault(step, now)
        if step in self._ended or (share < 1 and now - self._printed < self._interval):
            return
        parts = [f"{int(share * 100)}%"]  # rounded down, so that only a finished step is at 100%
        if texts and took > 0:
            parts.append(f"{texts / took:,.0f} texts/s")
        if share >= 1:
            self._ended.add(step)
            parts.append(f"took {timedelta(seconds=round(took))}")
        self._printed = now
        self._console.print(f"{step}: {', '.join(parts)}", markup=False)
