"""Searches compared in turn: each runs in a process of its own, and all search for the same queries round by round.

A machine's speed changes while it measures, and so it changes for all of them alike.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.answering import Effort
from bench.folders import PROJECT
from bench.report import console

ROUNDS = 6
# libraries of linear algebra and of OpenMP would otherwise use all cores for one query
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Searcher:
    """A running process that searches: see `bench.answering`."""

    process: "subprocess.Popen[str]"
    load_seconds: float

    def search(self, queries: Sequence[int], effort: Effort = (), threads: int = 1) -> "Answer":
        """Search for the queries with these numbers. Raises SystemExit if the process ended."""
        assert self.process.stdin is not None
        asked = {"queries": [int(number) for number in queries], "effort": list(effort), "threads": threads}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return Answer(**_next_line(self.process))


@dataclass(frozen=True, slots=True)
class Answer:
    """What one search process saw: of each query the rows and milliseconds, of itself the megabytes of memory."""

    seconds: float  # of all queries together
    milliseconds: list[float]
    rows: list[list[int]]
    resident_megabytes: float
    own_megabytes: float  # without the pages of mapped files


@dataclass(frozen=True, slots=True)
class Entry:
    """What takes part in a contest: a search process and how far it goes for one query."""

    searcher: Searcher
    effort: Effort = ()


@dataclass(slots=True)
class Result:
    """What was seen of an entry, one thread first: milliseconds by query, and by round their median."""

    milliseconds: list[float] = field(default_factory=list)
    round_medians: list[float] = field(default_factory=list)
    seconds_on_two_threads: list[float] = field(default_factory=list)  # of each round's queries together
    rows: list[list[int]] = field(default_factory=list)
    resident_megabytes: float = 0.0
    own_megabytes: float = 0.0

    def percentile(self, share: float) -> float:
        """Return the milliseconds that this share of the queries, 0 to 100, does not exceed."""
        return float(np.percentile(self.milliseconds, share))

    def share_of(self, other: "Result") -> float:
        """Return how long a search takes as a multiple of the other's: the median over the rounds."""
        return statistics.median(a / b for a, b in zip(self.round_medians, other.round_medians, strict=True))

    def two_threads(self) -> float:
        """Return the time that two threads need for the queries as a multiple of one thread's: median of the rounds."""
        size = len(self.milliseconds) // len(self.round_medians)
        alone = [sum(self.milliseconds[begin : begin + size]) / 1e3 for begin in range(0, len(self.milliseconds), size)]
        return statistics.median(a / b for a, b in zip(self.seconds_on_two_threads, alone, strict=True))


@contextmanager
def running(commands: Mapping[str, Sequence[str | Path]]) -> Iterator[dict[str, Searcher]]:
    """Start a search process for each command, one after the other; end them with the block.

    Raises SystemExit if one does not start.
    """
    with ExitStack() as stack:
        searchers = {}
        for name, command in commands.items():
            process = subprocess.Popen(
                [*map(str, command)],
                cwd=PROJECT,
                env=os.environ | ONE_THREAD,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)  # closes its input, which ends it, and waits
            searchers[name] = Searcher(process, _next_line(process)["load_seconds"])
        yield searchers


def _next_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{process.args!r}: the search process ended; its error is above")
    content: dict[str, Any] = json.loads(line)
    return content


def compare(entries: Mapping[str, Entry], queries: int, rounds: int = ROUNDS) -> dict[str, Result]:
    """Let all entries search for queries 0 to `queries`, of which each round takes an equal part; return what was seen.

    An entry searches for the queries of a round on one thread, and then on two threads at once.
    """
    results = {name: Result() for name in entries}
    size = queries // rounds
    for entry in entries.values():  # so that the first round finds everything in memory
        entry.searcher.search(range(size), entry.effort)
    for number in range(rounds):
        part = range(number * size, (number + 1) * size)
        for name, entry in entries.items():
            result, alone = results[name], entry.searcher.search(part, entry.effort)
            result.milliseconds += alone.milliseconds
            result.round_medians.append(statistics.median(alone.milliseconds))
            result.rows += alone.rows
            both = entry.searcher.search(part, entry.effort, threads=2)
            result.seconds_on_two_threads.append(both.seconds)
            result.resident_megabytes, result.own_megabytes = both.resident_megabytes, both.own_megabytes
        console.print(f"searched: round {number + 1} of {rounds}")
    return results
