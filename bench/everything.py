"""Make all measurements again, each in a process of its own; skip, with the reason, what cannot run on this machine."""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.data import add_data_argument
from bench.folders import PROJECT
from bench.measurements import MEASUREMENTS
from bench.needs import EXIT_CODE
from bench.report import console

# arguments that a measurement needs here and not by itself
ARGUMENTS = {"demo": ("--save",)}
WITHOUT_DATA = ("demo", "cost")  # commands that read no data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Measure all; return 1 if a measurement failed."""
    commands = {}
    for name in MEASUREMENTS:
        data = () if name in WITHOUT_DATA else ("--data", str(options.data.absolute()))
        arguments = (name, "--work", str(options.work.absolute()), *data, *ARGUMENTS.get(name, ()))
        commands[name] = [sys.executable, "-m", "bench", *arguments]
    return run_all(commands, PROJECT)


def run_all(commands: Mapping[str, Sequence[str]], folder: Path) -> int:
    """Run the commands in turn and print the outcome of each; return 1 if a command failed, otherwise 0."""
    outcomes = {}
    for name, command in commands.items():
        console.rule(name)
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        outcomes[name] = f"measured in {time.perf_counter() - begin:.0f} s"
        if done.returncode == EXIT_CODE:
            outcomes[name] = f"skipped: {done.stderr.strip().splitlines()[-1]}"
        elif done.returncode:
            outcomes[name] = f"failed: exit {done.returncode}"
    console.rule("all")
    for name, outcome in outcomes.items():
        console.print(f"{name}: {outcome}", markup=False)
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))
