"""Milliseconds to embed one text on one thread, in each precision.

The models run in turn: a model that runs alone in a loop keeps its weights in the processor's caches, and a function
that waits for requests does not.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.data import add_data_argument
from bench.embed import open_embedder
from bench.models import NAIVE, make_models
from bench.provenance import make_provenance
from bench.report import report
from bench.texts import read_texts
from function.engine.embedder import TokenIds

WRITES: tuple[str, ...] = ("latency",)
MEASURES: tuple[str, ...] = ("function/engine", "export", "requirements.txt")
LENGTHS = (8, 16, 32)  # tokens
FEW = 20  # texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rounds", type=int, default=200, help="texts of each length")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    embedders = {name: open_embedder(path) for name, path in make_models(options.work).items()}
    texts = read_texts(options.data, 20_000)
    tokens = next(iter(embedders.values())).tokenize(texts.texts)
    by_length = {length: of_length(tokens, length) for length in LENGTHS}
    times: dict[str, dict[int, list[float]]] = {name: {length: [] for length in LENGTHS} for name in embedders}
    for round_number in range(options.rounds):
        for length, chosen in by_length.items():
            text = chosen[round_number % len(chosen)]
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
    details = {"median": medians, "p10_p90": spread, "rounds": options.rounds}
    report("latency", columns, rows, details, make_provenance(texts.description()))
    return 0


def of_length(tokens: Sequence[TokenIds], length: int) -> list[TokenIds]:
    """Return the texts of exactly this many tokens; where there are few, longer ones too, shortened to it."""
    exact = [text for text in tokens if len(text.ids) == length]
    if len(exact) >= FEW:
        return exact
    longer = [text for text in tokens if len(text.ids) >= length]
    return [replace(text, ids=[*text.ids[: length - 1], text.ids[-1]]) for text in longer]  # the last one ends a text
