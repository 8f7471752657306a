"""Semantic search compared with libraries that search a memory-mapped file: faiss and usearch.

All search the same rows, on one thread, with the fastest settings that reach `--recall`. They take turns, query by
query. The queries are four words of passages of the corpus, and claims of SciFact. Building the indexes of a million
rows takes half an hour; they are kept.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

import numpy as np

from bench.environments import ONE_THREAD, library_python
from bench.report import PEERS, PROJECT, Missing, make_provenance, report
from bench.scale.queries import CLAIMS, WORDS, make_queries, write_queries
from bench.texts import add_data_argument, read_scifact
from function.engine.bundle import BundleError, open_bundle

WRITES: tuple[str, ...] = ("nearest",)
MEASURES: tuple[str, ...] = ("export.index.index_file", "requirements.txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, help="bundle to search; by default the largest that `scale` has made")
    parser.add_argument("--recall", type=float, default=0.98, help="recall@10 that each search must reach")
    parser.add_argument(
        "--queries", type=int, default=600, help="passages of the corpus of which four words are searched for"
    )
    parser.add_argument("--rounds", type=int, default=2, help="searches for each query")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute() / "scale"
    bundles = sorted(work.glob("passages-*/manifest.json"), key=lambda path: int(path.parent.name.partition("-")[2]))
    bundle = options.bundle or (bundles[-1].parent if bundles else Path("bundle"))
    try:
        index = open_bundle(bundle).index
    except BundleError as error:
        raise Missing(str(error)) from error
    if index is None or index.stages is None:
        raise Missing(f"{bundle}: has no stages, so every search is exact; expected a bundle of more texts")
    claims = list(read_scifact(options.data).queries.values())
    work.mkdir(parents=True, exist_ok=True)
    made = make_queries(bundle, options.queries, claims)
    queries = write_queries(work / "queries-nearest.npz", bundle, {kind: made[kind] for kind in (WORDS, CLAIMS)})
    python = library_python(options.work.absolute(), PEERS / "nearest.txt")
    command = [python, "-m", "bench.peers.nearest", bundle.absolute(), queries, work, options.recall, options.rounds]
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(PROJECT)}
    done = subprocess.run(list(map(str, command)), cwd=PROJECT, env=environment, stdout=subprocess.PIPE, check=True)
    seen = json.loads(done.stdout)
    for found in seen.values():
        times = found.pop("milliseconds")
        found |= {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
    own = seen["this project"]["p50"]
    rows = [
        (name, f"{each['recall']:.4f}", f"{each['p50']:.2f}", f"{each['p99']:.2f}", f"{each['p50'] / own:.2f}")
        for name, each in seen.items()
    ]
    source = make_provenance(
        f"{index.rows:,} texts, four words of {options.queries} of them and {len(claims)} claims as queries"
    )
    report("nearest", ("search", "recall@10", "p50 ms", "p99 ms", "p50 / this project's"), rows, seen, source)
    return 0
