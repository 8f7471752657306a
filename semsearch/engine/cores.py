"""How many cores this process can use: on Linux, a container or `taskset` can leave it only some of the machine's."""

import os


def usable_cores() -> int:
    """Return the number of cores on which this process can run, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # on Linux alone
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
