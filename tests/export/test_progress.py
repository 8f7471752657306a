"""Bars where there is a terminal, and where there is none lines that a log can keep."""

import io

import pytest
from rich.console import Console

from export.progress import ProgressLines, showing_progress


class Clock:
    """A clock that the test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    """Standard output with someone in front of it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(out: io.StringIO, clock: Clock) -> ProgressLines:
    return ProgressLines(Console(file=out, highlight=False), interval=10, clock=clock)


def test_a_line_comes_at_most_every_interval_and_one_at_the_end(
    lines: ProgressLines, clock: Clock, out: io.StringIO
) -> None:
    lines("embed texts", 0)
    for second in range(1, 36):
        clock.seconds = second
        lines("embed texts", second / 40, second * 50)
    clock.seconds = 40
    lines("embed texts", 1, 2000)
    assert out.getvalue().splitlines() == [
        "embed texts: 25%, 50 texts/s, 0:00:30 left",
        "embed texts: 50%, 50 texts/s, 0:00:20 left",
        "embed texts: 75%, 50 texts/s, 0:00:10 left",
        "embed texts: 100%, 50 texts/s, took 0:00:40",
    ]


def test_the_time_left_counts_only_what_the_step_itself_has_done(
    lines: ProgressLines, clock: Clock, out: io.StringIO
) -> None:
    lines("embed texts", 0.6)  # taken over from an export that was stopped
    clock.seconds = 10
    lines("embed texts", 0.7, 500)
    assert out.getvalue().splitlines() == ["embed texts: 70%, 50 texts/s, 0:00:30 left"]


def test_a_step_counts_its_own_time_and_has_no_speed_without_texts(
    lines: ProgressLines, clock: Clock, out: io.StringIO
) -> None:
    clock.seconds = 100
    lines("quantize", 0)
    clock.seconds = 3700
    lines("quantize", 0.5)
    clock.seconds = 7301
    lines("quantize", 1)
    assert out.getvalue().splitlines() == [
        "quantize: 0%",  # nothing is known yet of how long it takes
        "quantize: 50%, 1:00:00 left",
        "quantize: 100%, took 2:00:01",
    ]


def test_short_steps_have_one_line_each_though_they_come_close_together(lines: ProgressLines, out: io.StringIO) -> None:
    for step in ("read texts", "export graph"):
        lines(step, 0)
        lines(step, 0.5)
        lines(step, 1)
        lines(step, 1)
    assert out.getvalue().splitlines() == ["read texts: 100%, took 0:00:00", "export graph: 100%, took 0:00:00"]


def test_a_step_that_has_not_ended_is_never_at_100_percent(
    lines: ProgressLines, clock: Clock, out: io.StringIO
) -> None:
    lines("embed texts", 0)
    clock.seconds = 10
    lines("embed texts", 0.9999, 9999)
    assert out.getvalue().startswith("embed texts: 99%,")


def test_a_line_is_on_its_way_at_once_and_not_when_a_buffer_is_full(clock: Clock) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
    ProgressLines(Console(file=file), clock=clock)("read texts", 1)
    assert raw.getvalue() == b"read texts: 100%, took 0:00:00\n"


def test_a_terminal_gets_bars_with_the_speed(clock: Clock) -> None:
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    with showing_progress(console) as progress:
        progress("export graph", 0)
        progress("export graph", 1)
        progress("embed texts", 0)
        progress("embed texts", 0.5, 60)
        progress("embed texts", 1, 120)
    printed = terminal.getvalue()
    assert "━━━" in printed
    assert "100%" in printed
    assert "texts/s" in printed
    assert "took" not in printed


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}, {"TERM": "dumb", "FORCE_COLOR": "1"}])
def test_a_file_gets_lines_even_where_colours_are_asked_for(environment: dict[str, str], out: io.StringIO) -> None:
    console = Console(file=out, highlight=False, _environ=environment)
    with showing_progress(console) as progress:
        progress("embed texts", 0)
        progress("embed texts", 1, 120)
    assert out.getvalue().startswith("embed texts: 100%, ")
