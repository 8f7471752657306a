"""From 10,000 to a million passages: the export, search, filters, keywords, hybrid search and cold starts.

Every size has a bundle: the largest is exported, the others hold its first rows. The queries are four words of
passages, evenly spread. The recall is measured with three other kinds of queries too: bench/scale/queries.py.
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

from bench.environments import ONE_THREAD
from bench.function.candidates import make_functions
from bench.function.cold_start import DROPPED, WARM, available_states, measure
from bench.function.image import MADE_WITH
from bench.report import PROJECT, Panel, console, draw_lines, make_provenance, numbers, report
from bench.scale.bundles import make_bundles
from bench.scale.queries import CLAIMS, HALVES, WHOLE, WORDS, make_queries, measure_recall, write_queries
from bench.scale.searches import EXACT, FILTERS, HYBRID, KEYWORD, SEMANTIC
from bench.texts import add_data_argument, read_scifact
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, read_manifest

WRITES: tuple[str, ...] = ("scale",)
MEASURES: tuple[str, ...] = (
    *("function.handler", "export.index.indexer", "export.index.embed", "export.index.update", *MADE_WITH),
)
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
    draw(seen)
    return 0


def search_in_turn(work: Path, bundle: Path, count: int, claims: list[str]) -> dict[str, dict[str, float]]:
    """Return what was measured of each kind of search and of queries in a bundle, with `count` queries of a kind.

    claims are texts that are not in the bundle.
    """
    queries = write_queries(work / f"queries-{bundle.name}.npz", bundle, make_queries(bundle, count, claims))
    command: list[str | Path] = [sys.executable, "-m", "bench.scale.searches", bundle, queries, str(count)]
    done = subprocess.run(command, cwd=PROJECT, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, check=True)
    seen: dict[str, dict[str, float]] = json.loads(done.stdout)
    with np.load(queries) as embeddings:
        for kind, recall in measure_recall(bundle, embeddings).items():
            seen[kind] |= {"recall": recall.at_10, "first": recall.first}
    return seen


def table(seen: Mapping[int, Figures]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return a column for each size and the rows of what was measured, the answers to most questions first."""
    lines: list[tuple[str, Callable[[Figures], str]]] = [
        ("search p50, p99 ms, one thread", lambda size: _times(size, SEMANTIC)),
        *(
            (f"{kind}: recall@10, first hit, p50 ms", lambda size, kind=kind: _found(size, kind))
            for kind in (WHOLE, WORDS, HALVES, CLAIMS)
        ),
        ("exact search p50, p99 ms", lambda size: _times(size, EXACT)),
        ("keyword p50, p99 ms", lambda size: _times(size, KEYWORD)),
        ("hybrid p50, p99 ms", lambda size: _times(size, HYBRID)),
        ("INIT ms, page cache warm", lambda size: _median(size, WARM, "init")),
        ("INIT ms, page cache dropped", lambda size: _median(size, DROPPED, "init")),
        ("resident MB after the searches (of mapped files)", _resident),
        ("export (the smaller sizes with --update): seconds, peak MB, busy cores", _export),
        ("index, passages, keywords, columns on disk MB", _megabytes),
        *(
            (f"a filter keeps {100 * share:.4g} %: p50, p99 ms", lambda size, kind=kind: _times(size, kind))
            for share, kind in FILTERS.items()
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
    found = size["searches"][SEMANTIC]
    mapped = found["resident_megabytes"] - found["own_megabytes"]
    return f"{found['resident_megabytes']:,.0f} ({mapped:,.0f})"


def _export(size: Figures) -> str:
    if "export" not in size:  # a bundle that --keep took over
        return ""
    spent = size["export"]
    cores = spent["processor_seconds"] / spent["seconds"]
    return f"{spent['seconds']:,.0f}, {spent['peak_megabytes']:,.0f}, {cores:.2f}"


def _megabytes(size: Figures) -> str:
    return ", ".join(f"{size['bytes'][name] / 1e6:,.1f}" for name in (INDEX, PASSAGES, KEYWORDS, COLUMNS))


def _median(size: Figures, cache: str, what: str) -> str:
    return f"{statistics.median(size['starts'][cache][what]):,.0f}" if cache in size["starts"] else ""


def draw(seen: Mapping[int, Figures]) -> None:
    """Write scale.svg: the milliseconds of each kind of search and of a cold start, by the number of passages."""
    searches = {
        kind: {int(size): figures["searches"][kind]["p50"] for size, figures in seen.items()}
        for kind in (SEMANTIC, EXACT, KEYWORD, HYBRID)
    }
    starts = {
        f"{words}, page cache {cache}": {
            int(size): statistics.median(figures["starts"][cache][what]) for size, figures in seen.items()
        }
        for cache in next(iter(seen.values()))["starts"]
        for what, words in (("init", "INIT"), ("first_response", "first response"))
    }
    panels = [
        Panel("searches, one thread", "milliseconds, median", searches, is_logarithmic=True),
        Panel("cold starts", "milliseconds, median", starts),
    ]
    draw_lines("scale", "passages", panels)
