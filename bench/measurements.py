"""The measurements by the names of their commands, in the order in which `all` makes them."""

import argparse
from typing import Protocol

from bench import (
    ablation,
    accuracy,
    cluster,
    cold_start,
    cost,
    demo,
    latency,
    layers,
    limits,
    memory,
    modes,
    scale,
    serve,
    soak,
    switching,
    throughput,
    warm,
    warm_profile,
)


class Command(Protocol):
    """A module that is a command; its docstring is the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; return the exit code."""


class Measurement(Command, Protocol):
    """A command that writes results."""

    WRITES: tuple[str, ...]  # the results' names in bench/results/
    MEASURES: tuple[str, ...]  # the paths of the project that the results depend on


# what is quick and needs no Docker first; cost reads what memory wrote, and the last two take longest
MEASUREMENTS: dict[str, Measurement] = {
    "demo": demo,
    "accuracy": accuracy,
    "modes": modes,
    "latency": latency,
    "throughput": throughput,
    "cluster": cluster,
    "warm": warm,
    "warm-profile": warm_profile,
    "limits": limits,
    "serve": serve,
    "soak": soak,
    "switching": switching,
    "cold-start": cold_start,
    "memory": memory,
    "layers": layers,
    "cost": cost,
    "ablation": ablation,
    "scale": scale,
}
