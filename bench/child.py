"""A program run as a child process, and what it took from the machine.

The kernel counts the memory of the process that starts a program as that program's own. So a small process of its own,
this module, starts it: memory below some 10 MB cannot be told.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.folders import PROJECT


@dataclass(frozen=True, slots=True)
class Spent:
    """What a program took: the time that went by, the processors' time, and its largest resident memory."""

    seconds: float
    processor_seconds: float  # of all its threads, and of the processes that it waited for
    peak_megabytes: float  # of the largest of its processes


def run_measured(command: Sequence[str | Path]) -> Spent:
    """Run a command in the project's folder and return what it took. Raises SystemExit if its exit code is not 0."""
    starter = [sys.executable, "-m", "bench.child", *map(str, command)]
    done = subprocess.run(starter, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}; its error is above")
    return Spent(**json.loads(done.stdout))


def main() -> int:
    """Run the command that the arguments are, print what it took as JSON, return its exit code."""
    begin = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    spent = Spent(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
    print(json.dumps(asdict(spent)))
    return int(process.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
