"""Measurements: how fast, how close and how cheap this project is, one command for each question."""

import argparse
from importlib import import_module
from typing import Protocol, cast

# The measurements by the names of their commands, in the order in which `all` makes them: quick ones without Docker
# first, those that take hours last.
MEASUREMENTS = {
    "demo": "bench.function.demo",
    "accuracy": "bench.model.accuracy",
    "modes": "bench.model.modes",
    "documents": "bench.model.documents",
    "rerank": "bench.model.rerank",
    "browser": "bench.browser.browser",
    "throughput": "bench.model.throughput",
    "warm": "bench.function.warm",
    "limits": "bench.function.limits",
    "serve": "bench.server.serve",
    "soak": "bench.server.soak",
    "cold-start": "bench.function.cold_start",
    "memory": "bench.function.memory",
    "ablation": "bench.function.ablation",
    "scale": "bench.scale.scale",
    "nearest": "bench.scale.nearest",
}


class Command(Protocol):
    """A module that is a command; its docstring is the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return the exit code."""


class Measurement(Command, Protocol):
    """A command that writes results."""

    WRITES: tuple[str, ...]  # names of the results in bench/results/
    MEASURES: tuple[str, ...]  # modules that it runs but does not import at its top, and other files it depends on


def load_measurement(name: str) -> Measurement:
    """Import the measurement of this name."""
    return cast(Measurement, import_module(MEASUREMENTS[name]))
