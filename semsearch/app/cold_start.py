"""Parts of a start that Lambda and the server share: no garbage collection, and the report of the phases."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from semsearch.app.telemetry import ReportColdStart


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn garbage collection off in the block, because imports create many objects and hardly any garbage.

    At the end, all existing objects are declared permanent: later collections do not examine them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class ColdStart:
    """The phases of this process's start. The first request afterwards reports them, once.

    Requests before `end` are warm-ups: they are answered and not logged.
    """

    def __init__(self, report: ReportColdStart, archive: str = "not opened yet") -> None:
        """Let `report` receive the phases; archive says whether the modules come from an archive, for GET /info."""
        self.report = report
        self.archive = archive
        self.phases: Mapping[str, float] = {}  # milliseconds
        self.is_over: bool = False
        self._unreported: Mapping[str, float] = {}

    def begin(self) -> None:
        """Begin a restore: until `end`, requests are warm-ups again."""
        self.is_over = False
        self._unreported = {}

    def end(self, phases: Mapping[str, float]) -> None:
        """Store the start's phases, in milliseconds, which the next request reports."""
        self.phases = self._unreported = dict(phases)
        self.is_over = True

    def take(self) -> Mapping[str, float]:
        """Return the phases at the first request after the start, and an empty mapping later."""
        taken, self._unreported = self._unreported, {}
        return taken
