"""From 10,000 to a million passages: the export, search, filters, keywords, hybrid search and cold starts.

Every size has a bundle: the largest is exported, the others hold its first rows. The queries are four words of
passages, evenly spread. The recall is measured with three other kinds of queries too: bench/searches.py.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import searches
from bench.cold_start import DROPPED, WARM, available_states, make_functions, measure
from bench.report import PROJECT, console, make_provenance, numbers, report
from bench.scale_bundles import make_bundles
from bench.texts import add_data_argument, read_scifact
from bench.work import ONE_THREAD
from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, check_bundle, read_manifest
from semsearch.engine.semantic.index import Index
from semsearch.indexing.vectors.recall import search_exactly

SIZES = (10_000, 30_000, 100_000, 194_182, 1_000_000)  # 194,182: all headlines
Figures = Mapping[str, Any]  # what was measured at one size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="passages of each bundle, with commas")
    parser.add_argument("--queries", type=int, default=600, help="passages of each corpus that are searched for")
    parser.add_argument("--starts", type=int, default=5, help="cold starts of each size")
    parser.add_argument(
        "--keep", action="store_true", help="measure the bundles that are there, also those of older code"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute() / "scale"
    claims = list(read_scifact(options.data).queries.values())
    work.mkdir(parents=True, exist_ok=True)
    bundles, description = make_bundles(work, options.data, options.sizes, options.keep)
    seen: dict[int, dict[str, Any]] = {}
    for size, bundle in bundles.items():
        export = bundle.with_name(f"{bundle.name}.export.json")
        seen[size] = {"export": json.loads(export.read_text(encoding="utf-8"))} if export.exists() else {}
        seen[size]["bytes"] = {name: file.bytes for name, file in read_manifest(bundle).files.items()}
        seen[size]["searches"] = search_in_turn(work, bundle, options.queries, claims)
        console.print(f"searched {size:,} passages")
    functions = make_functions(options.work.absolute(), {str(size): bundle for size, bundle in bundles.items()})
    starts = {cache: measure(functions, options.starts, cache) for cache in available_states()}
    for size in bundles:
        seen[size]["starts"] = {cache: asdict(by_size[str(size)]) for cache, by_size in starts.items()}
    report("scale", *table(seen), {"sizes": seen}, make_provenance(description))
    return 0


def search_in_turn(work: Path, bundle: Path, count: int, claims: list[str]) -> dict[str, dict[str, float]]:
    """Return what was measured of each kind of search and of queries in a bundle, with `count` queries of a kind.

    claims are texts that are not in the bundle.
    """
    made = searches.make_queries(bundle, count, claims)
    queries = searches.write_queries(work / f"queries-{bundle.name}.npz", bundle, made)
    command: list[str | Path] = [sys.executable, "-m", "bench.searches", bundle, queries, str(count)]
    done = subprocess.run(command, cwd=PROJECT, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, check=True)
    seen: dict[str, dict[str, float]] = json.loads(done.stdout)
    described = check_bundle(bundle).index
    assert described is not None  # check_bundle checked it
    index = Index.open(bundle / INDEX, described.stages)
    rows = index.codes_of(np.arange(described.rows))
    with np.load(queries) as embeddings:
        for kind, each in embeddings.items():
            recall = search_exactly(each, *rows).recall_of(index)
            seen[kind] |= {"recall": recall.at_10, "first": recall.first}
    return seen


def table(seen: Mapping[int, Figures]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return a column for each size and the rows of what was measured, the answers to most questions first."""
    lines: list[tuple[str, Callable[[Figures], str]]] = [
        ("search p50, p99 ms, one thread", lambda size: _times(size, searches.SEMANTIC)),
        *(
            (f"{kind}: recall@10, first hit, p50 ms", lambda size, kind=kind: _found(size, kind))
            for kind in (searches.WHOLE, searches.WORDS, searches.HALVES, searches.CLAIMS)
        ),
        ("exact search p50, p99 ms", lambda size: _times(size, searches.EXACT)),
        ("keyword p50, p99 ms", lambda size: _times(size, searches.KEYWORD)),
        ("hybrid p50, p99 ms", lambda size: _times(size, searches.HYBRID)),
        ("INIT ms, page cache warm", lambda size: _median(size, WARM, "init")),
        ("INIT ms, page cache dropped", lambda size: _median(size, DROPPED, "init")),
        ("resident MB after the searches (of mapped files)", _resident),
        ("export (the smaller sizes with --update): seconds, peak MB, busy cores", _export),
        ("index, passages, keywords, columns on disk MB", _megabytes),
        *(
            (f"a filter keeps {100 * share:.4g} %: p50, p99 ms", lambda size, kind=kind: _times(size, kind))
            for share, kind in searches.FILTERS.items()
        ),
        ("first response ms, page cache warm", lambda size: _median(size, WARM, "first_response")),
        ("first response ms, page cache dropped", lambda size: _median(size, DROPPED, "first_response")),
    ]
    rows = [(label, *(figure(size) for size in seen.values())) for label, figure in lines]
    return ["passages", *(f"{int(size):,}" for size in seen)], rows


def _times(size: Figures, kind: str) -> str:
    found = size["searches"][kind]
    return f"{found['p50']:.2f}, {found['p99']:.2f}"


def _found(size: Figures, kind: str) -> str:
    found = size["searches"][kind]
    return f"{found['recall']:.3f}, {found['first']:.3f}, {found['p50']:.2f}"


def _resident(size: Figures) -> str:
    found = size["searches"][searches.SEMANTIC]
    mapped = found["resident_megabytes"] - found["own_megabytes"]
    return f"{found['resident_megabytes']:,.0f} ({mapped:,.0f})"


def _export(size: Figures) -> str:
    if "export" not in size:  # a bundle that --keep accepted without these figures
        return ""
    spent = size["export"]
    cores = spent["processor_seconds"] / spent["seconds"]
    return f"{spent['seconds']:,.0f}, {spent['peak_megabytes']:,.0f}, {cores:.2f}"


def _megabytes(size: Figures) -> str:
    return ", ".join(f"{size['bytes'][name] / 1e6:,.1f}" for name in (INDEX, PASSAGES, KEYWORDS, COLUMNS))


def _median(size: Figures, cache: str, what: str) -> str:
    return f"{statistics.median(size['starts'][cache][what]):,.0f}" if cache in size["starts"] else ""
