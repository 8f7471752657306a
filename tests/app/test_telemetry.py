"""Phases in milliseconds, on a clock that the test turns by hand."""

from collections.abc import Callable

import pytest

from semsearch.app import telemetry
from semsearch.app.telemetry import Stopwatch, server_timing


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that lets milliseconds pass on the stopwatch's clock."""
    now = 5_000_000_000

    def pass_time(milliseconds: float) -> None:
        nonlocal now
        now += round(milliseconds * 1e6)

    monkeypatch.setattr(telemetry, "perf_counter_ns", lambda: now)
    return pass_time


def test_a_phase_that_comes_again_adds_up(wait: Callable[[float], None]) -> None:
    stopwatch = Stopwatch()
    for milliseconds, phase in ((1, "embed"), (2, "search"), (4, "embed")):
        wait(milliseconds)
        stopwatch.lap(phase)
    assert stopwatch.phases == {"embed": 5, "search": 2}


def test_server_timing_names_each_phase_in_order_and_the_total_last() -> None:
    header = server_timing({"embed": 1.23456, "search": 0.0}, total=2)
    assert header == "embed;dur=1.23, search;dur=0.00, total;dur=2.00"
    assert server_timing({}, total=0.125) == "total;dur=0.12"
