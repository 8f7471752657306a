"""python -m bench: what the project claims, measured on this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cyclopts import App

from bench import DATA, PROJECT, SKIPPED, WORK, Missing

# The module of each measurement, which has a function of its name, in the order in which `all` makes them: quick ones
# first, those that take long last.
MEASUREMENTS = {
    "warm": "warm",
    "latency": "accuracy",
    "accuracy": "accuracy",
    "modes": "relevance",
    "floor": "relevance",
    "few": "few",
    "near": "near",
    "documents": "relevance",
    "rewritings": "rewritings",
    "throughput": "accuracy",
    "browser": "browser",
    "box": "browser",
    "agents": "serve",
    "serve": "serve",
    "cold-start": "cold_start",
    "other-routes": "other_routes",
    "memory": "cold_start",
    "update": "update",
    "month": "month",
    "scale": "scale",
    "nearest": "nearest",
}
COMMANDS = {"demo": "warm", "limits": "limits"} | MEASUREMENTS | {"tables": "tables"}
FOLDERS = """\
--work is the folder for models, bundles and environments (default: BENCH_WORK, or build/bench), and --data the one with
the files of docs/benchmarks.md (default: BENCH_DATA, or build/bench/data).
"""

program = App("python -m bench", help=__doc__, help_epilogue=FOLDERS, version_flags=[])
for _place, (_name, _module) in enumerate(COMMANDS.items()):
    program.command(f"bench.{_module}:{_name.replace('-', '_')}", name=_name, sort_key=_place)


def main() -> int:
    """Run the command that sys.argv names, and return its exit code. Only the module of that command is imported."""
    command, bound, _ = program.parse_args()
    try:
        return int(command(*bound.args, **bound.kwargs) or 0)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return SKIPPED


@program.command(name="all", sort_key=len(COMMANDS))
def measure_all(*, work: Path = WORK, data: Path = DATA) -> int:
    """Make all measurements again, each in a process of its own; skip, with the reason, those that cannot run here.

    Returns 1 if one failed, otherwise 0.
    """
    os.environ |= {"BENCH_WORK": str(work.absolute()), "BENCH_DATA": str(data.absolute())}
    return run_all({name: [sys.executable, "-m", "bench", name] for name in MEASUREMENTS})


def run_all(commands: Mapping[str, Sequence[str]]) -> int:
    """Run the commands in turn and print the outcome of each; return 1 if a command failed, otherwise 0."""
    outcomes = {}
    for name, command in commands.items():
        print(f"\n{name}", flush=True)
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        outcomes[name] = f"measured in {time.perf_counter() - begin:.0f} s"
        if done.returncode == SKIPPED:
            outcomes[name] = f"skipped: {done.stderr.strip().splitlines()[-1]}"
        elif done.returncode:
            outcomes[name] = f"failed: exit {done.returncode}"
    print("\nall")
    for name, outcome in outcomes.items():
        print(f"{name}: {outcome}")
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
