"""A program run as a child process, and what it took from the machine."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.folders import PROJECT


@dataclass(frozen=True, slots=True)
class Spent:
    """What a program took: the time that went by, the processors' time, and its largest resident memory."""

    seconds: float
    processor_seconds: float  # of all its threads, and of the processes that it waited for
    peak_megabytes: float  # of the largest of its processes

    def cores(self) -> float:
        """Return how many cores were busy on average."""
        return self.processor_seconds / self.seconds


def run_measured(command: Sequence[str | Path]) -> Spent:
    """Run a command in the project's folder and return what it took. Raises SystemExit if its exit code is not 0."""
    begin = time.perf_counter()
    process = subprocess.Popen([*map(str, command)], cwd=PROJECT, stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {process.returncode}; its error is above")
    return Spent(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
