"""Named phases in milliseconds: of the cold start, and of each request. Standard library only."""

from time import perf_counter_ns


class Stopwatch:
    """Starts when it is made; `lap` closes a phase and opens the next."""

    __slots__ = ("_begin", "_last", "phases")

    def __init__(self) -> None:
        self._begin = self._last = perf_counter_ns()
        self.phases: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        """Add the milliseconds since the last lap to a phase."""
        now = perf_counter_ns()
        self.phases[phase] = self.phases.get(phase, 0.0) + (now - self._last) / 1e6
        self._last = now

    def total(self) -> float:
        """Give the milliseconds since the stopwatch was made."""
        return (perf_counter_ns() - self._begin) / 1e6


def server_timing(phases: dict[str, float], total: float) -> str:
    """Give the value of a Server-Timing header (W3C): browsers draw it, and curl shows it with -i."""
    entries = [f"{phase};dur={milliseconds:.2f}" for phase, milliseconds in phases.items()]
    return ", ".join([*entries, f"total;dur={total:.2f}"])
