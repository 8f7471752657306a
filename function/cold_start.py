"""What is known of this process's start, and told once: by the first request after it."""

from collections.abc import Callable, Mapping

Report = Callable[[Mapping[str, float]], None]


class ColdStart:
    """The phases of a start, in milliseconds; `end` ends it."""

    def __init__(self, phases: dict[str, float], report: Report) -> None:
        """Take phases that are still being filled; `report` gets them once, when the first request has its answer."""
        self.phases = phases
        self.report = report
        self.is_over = False  # requests before are warm-ups: answered, not told of
        self._is_told = False

    def begin(self) -> None:
        """Have requests be warm-ups again, until `end`."""
        self.is_over = False

    def end(self) -> None:
        """Have the next request tell of the start."""
        self.is_over = True
        self._is_told = False

    def take(self) -> dict[str, float]:
        """Give the phases to the first request after the start, and to every other none."""
        if not self.is_over or self._is_told:
            return {}
        self._is_told = True
        return self.phases
