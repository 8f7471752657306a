"""Texts embedded a second by the local export and on a Ray cluster, on the same one core and on the same two, in turn.

Each core of the cluster is a node of its own on this machine. The time until Ray's first shard begins (Ray starts its
workers, and they get the model) is told apart. The rows of all exports are compared, also those of one export whose
second node is killed half-way. Needs the extra [cluster]: `make test-cluster` makes the environment
build/cluster that has it.
"""

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.data import add_data_argument
from bench.needs import Missing
from bench.provenance import make_provenance
from bench.report import console, report
from bench.texts import read_texts
from export.cluster import Cluster
from export.index.embed import EmbedShards, embed_corpus, embed_here
from function.engine.bundle import read_manifest
from function.engine.embedder import Embedder

WRITES: tuple[str, ...] = ("cluster", "cluster_calculated")
MEASURES: tuple[str, ...] = ("function/engine", "export", "requirements.txt")

LARGE = 100_000_000  # texts, for the calculation
CORES = (16, 64, 256)
# https://aws.amazon.com/ec2/pricing/on-demand/: c7i.large in us-east-1, one core that runs two threads; check it there
DOLLARS_PER_CORE_HOUR = 0.08925


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose model embeds")
    parser.add_argument("--texts", type=int, default=100_000, help="texts to embed")
    parser.add_argument("--cores", type=int, choices=(1, 2), nargs="+", default=[1, 2], help="(default: 1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="times that each embeds all texts")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    if find_spec("ray") is None:
        raise Missing("ray is not installed; after `make test-cluster`, run this with build/cluster/bin/python")
    if (os.cpu_count() or 1) < 2:
        raise Missing("this machine has one core; the measurement needs two")
    chosen = read_texts(options.data, options.texts)
    embedder = Embedder.open(options.bundle, read_manifest(options.bundle).model)
    everywhere = sorted(os.sched_getaffinity(0))
    local: dict[int, list[float]] = {cores: [] for cores in options.cores}
    ray: dict[int, list[float]] = {cores: [] for cores in options.cores}
    digests: set[str] = set()
    starts: dict[int, list[float]] = {cores: [] for cores in options.cores}
    for number in range(options.rounds):
        for cores in local:
            os.sched_setaffinity(0, everywhere[:cores])  # what this process starts has these cores too
            here = _embed(embedder, chosen.texts, embed_here)
            there, start = _embed_on_ray(options.bundle, embedder, chosen.texts, cores)
            digests |= {here.digest, there.digest}
            local[cores].append(here.seconds)
            ray[cores].append(there.seconds - start)
            starts[cores].append(start)
            os.sched_setaffinity(0, everywhere)
            console.print(f"round {number + 1}, {cores} core(s): {local[cores][-1]:.1f} s, Ray {ray[cores][-1]:.1f} s")
    killed, start = _embed_on_ray(options.bundle, embedder, chosen.texts, 2, kill_at=0.5)
    console.print(f"a node killed half-way: {killed.seconds - start:.1f} s")
    are_equal = digests == {killed.digest}
    _report(len(chosen.texts), chosen.description(), local, ray, starts, killed.seconds - start, are_equal)
    return 0 if are_equal else 1


@dataclass(frozen=True, slots=True)
class Embedded:
    """One embedding of all texts: its seconds, and the SHA-256 of its rows."""

    seconds: float
    digest: str


def _embed(
    embedder: Embedder,
    texts: Sequence[str],
    embed_shards: EmbedShards,
    progress: Callable[[float, int], None] = lambda share, embedded: None,
) -> Embedded:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as fresh:
        found = embed_corpus(embedder, texts, Path(fresh), "bench", progress=progress, embed_shards=embed_shards)
        seconds = time.perf_counter() - begin
        digest = hashlib.sha256(found.codes.tobytes() + found.scales.tobytes()).hexdigest()
    return Embedded(seconds, digest)


def _embed_on_ray(
    bundle: Path, embedder: Embedder, texts: Sequence[str], cores: int, kill_at: float = 2.0
) -> tuple[Embedded, float]:
    """Embed the texts on this many nodes of one core; return the result, and the seconds until the first shard began.

    The last node is killed when kill_at of the texts are embedded; more than 1: none is.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        more = [nodes.add_node(num_cpus=1) for _ in range(cores - 1)]

        def kill(share: float, embedded: int) -> None:
            if more and share >= kill_at:
                nodes.remove_node(more.pop(), allow_graceful=False)  # SIGKILL

        cluster = Cluster(nodes.address, bundle)
        embedded = _embed(embedder, texts, cluster.embed, kill)
    finally:
        nodes.shutdown()
    return embedded, cluster.seconds_before


def _report(
    texts: int,
    description: str,
    local: dict[int, list[float]],
    ray: dict[int, list[float]],
    starts: dict[int, list[float]],
    killed: float,
    are_equal: bool,
) -> None:
    """Report what was measured, and what it would mean for a hundred million texts."""
    rows: list[tuple[Any, ...]] = []
    overheads = {}
    for cores in local:
        ratios = [there / here for here, there in zip(local[cores], ray[cores], strict=True)]
        overheads[cores] = 100 * (statistics.median(ratios) - 1)
        speeds = [f"{texts / statistics.median(seconds):,.0f}" for seconds in (local[cores], ray[cores])]
        rows.append((cores, *speeds, f"{overheads[cores]:+.1f} %", f"{statistics.median(starts[cores]):.1f}"))
    rows.append(("2, one killed half-way", "", f"{texts / killed:,.0f}", "", ""))
    rows.append(("rows of all these exports", "equal" if are_equal else "DIFFERENT", "", "", ""))
    columns = ("cores", "local, texts/s", "Ray, texts/s", "Ray's time beside local", "seconds until Ray begins")
    details: dict[str, Any] = {
        "number_of_texts": texts,
        "local": local,
        "ray": ray,
        "starts": starts,
        "overheads": overheads,
    }
    details |= {"killed": killed, "are_equal": are_equal}
    source = make_provenance(description)
    report("cluster", columns, rows, details, source)
    rate = texts / statistics.median(ray[max(ray)]) / max(ray)
    calculated = []
    for cores in CORES:
        hours = LARGE / rate / cores / 3600
        calculated.append((cores, f"{hours:,.1f}", f"{hours * cores * DOLLARS_PER_CORE_HOUR:,.0f}"))
    report(
        "cluster_calculated",
        ("cores", f"calculated hours for {LARGE:,} such texts", "calculated dollars"),
        calculated,
        {"texts_per_second_and_core": rate, "dollars_per_core_hour": DOLLARS_PER_CORE_HOUR},
        source,
    )
