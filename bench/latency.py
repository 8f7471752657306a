"""Milliseconds to embed one text on one thread, in each precision, the models run in turn.

In turn, because a model that runs alone in a loop has the caches to itself, which in a function it has not.
"""

import argparse
import statistics
import time

import numpy as np

from bench.data import add_data_argument, read_headlines
from bench.embed import open_embedder
from bench.models import NAIVE, make_models
from bench.report import report

LENGTHS = (8, 16, 32)  # tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rounds", type=int, default=200)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    embedders = {name: open_embedder(path) for name, path in make_models(options.work).items()}
    tokens = next(iter(embedders.values())).tokenize(read_headlines(options.data, 20_000))
    by_length = {length: [one for one in tokens if len(one.ids) == length] for length in LENGTHS}
    times: dict[str, dict[int, list[float]]] = {name: {length: [] for length in LENGTHS} for name in embedders}
    for round_number in range(options.rounds):
        for length, texts in by_length.items():
            text = texts[round_number % len(texts)]
            for name, embedder in embedders.items():
                begin = time.perf_counter()
                embedder.embed([text])
                times[name][length].append((time.perf_counter() - begin) * 1e3)
    medians = {name: {length: statistics.median(times[name][length]) for length in LENGTHS} for name in embedders}
    spread = {
        name: {length: [float(np.percentile(times[name][length], p)) for p in (10, 90)] for length in LENGTHS}
        for name in embedders
    }
    rows = [
        (
            name,
            *(f"{medians[name][n]:.2f} ({medians[name][n] / medians[NAIVE][n]:.2f})" for n in LENGTHS),
        )
        for name in embedders
    ]
    columns = ("weights", *(f"{length} tokens: ms (ratio to naive)" for length in LENGTHS))
    report("latency", columns, rows, {"median": medians, "p10_p90": spread, "rounds": options.rounds})
    return 0
