"""What work costs: processor seconds and wall seconds. Peers run it in environments that have only their packages."""

import time
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds of work.

    `processor` is user and system time on all cores, of this process and of the children that ended during the work.
    """

    processor: float
    wall: float


def measure(act: Callable[[], object]) -> Cost:
    """Return what one call costs."""
    processor, wall = _processor_seconds(), time.perf_counter()
    act()
    return Cost(_processor_seconds() - processor, time.perf_counter() - wall)


def measure_second(act: Callable[[], object]) -> Cost:
    """Return what the second call costs in a process that has made the first one."""
    act()
    return measure(act)


def _processor_seconds() -> float:
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
