"""Lambda SnapStart, which the zip flavour can have: the started process is kept, and restored instead of started."""

from collections.abc import Callable
from typing import Any

from snapshot_restore_py import register_after_restore

from function.cold_start import ColdStart
from function.stopwatch import Stopwatch
from function.warm_up import warm_up


def warm_up_after_restore(handler: Callable[[dict[str, Any], Any], dict[str, Any]], cold_start: ColdStart) -> None:
    """Have the handler asked once after each restore, before the first real request.

    A restored process finds its memory page by page as it asks for it: this is when that is paid for. The phases of the
    start that was kept are replaced: the first request tells of the restore.
    """

    def after_restore() -> None:
        stopwatch = Stopwatch()
        cold_start.begin()
        warm_up(handler)
        stopwatch.lap("restore-warm-up")
        cold_start.phases.clear()
        cold_start.phases.update(stopwatch.phases)
        cold_start.end()

    register_after_restore(after_restore)
