"""What the project claims, measured: `python -m bench`. This module has what all measurements share."""

import os
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PEERS = PROJECT / "bench" / "peers"
RESULTS = PROJECT / "bench" / "results"
WORK = Path(os.environ.get("BENCH_WORK") or "build/bench")  # models, bundles and environments
DATA = Path(os.environ.get("BENCH_DATA") or "build/bench/data")  # files of docs/benchmarks.md
SKIPPED = 3  # exit code of a measurement that this machine cannot run; `python -m bench all` goes on after it


class Missing(SystemExit):
    """A measurement needs something that this machine lacks; the message says what it is and how to get it."""
