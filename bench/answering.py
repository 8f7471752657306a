"""The searching side of a comparison: a process that searches for what each line of its input names.

It prints a line of JSON when it is ready, and one for each line that it reads. Nothing of the project is imported,
because other libraries run this in environments of their own.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Search = Callable[[int], Sequence[int]]  # the number of a query to the rows that are found, best first
Effort = Sequence[int]  # how far a search goes, in the settings of its library; empty where there are none


def answer(with_effort: Callable[[Effort], Search], load_seconds: float) -> None:
    """Search until the input ends; load_seconds is what opening the index took, or reading it."""
    print(json.dumps({"load_seconds": load_seconds}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(timed(with_effort(asked["effort"]), asked["queries"], asked["threads"])), flush=True)


def timed(search: Search, queries: Sequence[int], threads: int) -> dict[str, Any]:
    """Search for queries with these numbers; return the rows and milliseconds of each, and what the process takes.

    `seconds` is the time of all together, which with several threads is less than the sum.
    """

    def search_once(number: int) -> tuple[float, list[int]]:
        begin = time.perf_counter()
        rows = search(number)
        return (time.perf_counter() - begin) * 1e3, [int(row) for row in rows]

    begin = time.perf_counter()
    if threads == 1:  # without a pool, whose own thread would take turns with the search
        seen = [search_once(number) for number in queries]
    else:
        with ThreadPoolExecutor(threads) as pool:
            seen = list(pool.map(search_once, queries))
    seconds = time.perf_counter() - begin
    milliseconds, rows = [one[0] for one in seen], [one[1] for one in seen]
    return {"seconds": seconds, "milliseconds": milliseconds, "rows": rows, **resident_megabytes()}


def resident_megabytes() -> dict[str, float]:
    """Return how much memory this process has: in all, and without the pages of files that it maps."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = {
        name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in status) if "kB" in value
    }
    return {"resident_megabytes": kilobytes["VmRSS"] / 1024, "own_megabytes": kilobytes["RssAnon"] / 1024}
