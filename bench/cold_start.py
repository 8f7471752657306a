"""Cold starts under Lambda's own emulator: the function, an empty handler, and FastAPI with sentence-transformers.

With Docker the function and the empty handler start from images, otherwise on this machine's own Python. Each start
is a new emulator and a new process. INIT is what the emulator reports; the first response is measured from
outside, from sending the event, which starts INIT, to the last byte of the reply.
"""

import argparse
import re
import statistics
import time
from dataclasses import asdict
from typing import Any

from bench.bundles import corpus_of, make_bundle
from bench.candidates import EMPTY, OURS, PEER, Candidate, make_candidates, make_former, make_peer
from bench.data import add_data_argument
from bench.footprint import NUMBERS
from bench.page_cache import DROPPED, WARM, available_states, drop_page_cache
from bench.provenance import make_provenance
from bench.report import console, report, show
from bench.sample_event import sample_event
from bench.starts import Starts
from bench.texts import read_texts

WRITES: tuple[str, ...] = ("cold_start",)
MEASURES: tuple[str, ...] = ("function", "deploy", "Dockerfile", "requirements.txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=10, help="starts of each function")
    parser.add_argument("--no-peer", action="store_true", help="leave FastAPI + sentence-transformers out")
    parser.add_argument(
        "--against", metavar="REVISION", help="start the function of another git revision in turn; write no result"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(work, texts)
    candidates = make_candidates(work, bundle)
    if options.against:
        candidates[f"this function at {options.against}"] = make_former(work, options.against, corpus_of(bundle))
    elif not options.no_peer:
        candidates[PEER] = make_peer(work, bundle, texts)
    event = sample_event("/similar", {"text": "self driving cars navigation", "num_results": 5})
    seen = {cache: measure(candidates, event, options.starts, cache == DROPPED) for cache in available_states()}
    footprints = {name: candidate.footprint() for name, candidate in candidates.items()}
    if options.against:
        show(*table(candidates, seen, footprints))
        print_ratios(seen)
        return 0
    from bench.cold_start_picture import draw  # matplotlib is slow to import, and only this needs it

    details = {cache: {name: asdict(starts) for name, starts in by_name.items()} for cache, by_name in seen.items()}
    places = {name: candidate.place for name, candidate in candidates.items()}
    content = {"starts": options.starts, "places": places, "footprint": footprints, "seen": details}
    source = make_provenance(texts.description(), candidates[OURS].python)
    report("cold_start", *table(candidates, seen, footprints), content, source)
    draw(seen)
    return 0


def measure(candidates: dict[str, Candidate], event: dict[str, Any], starts: int, drop: bool) -> dict[str, Starts]:
    """Start each candidate this many times, in turn, after a round that warms the page cache and is not counted."""
    seen = {name: Starts() for name in candidates}
    for number in range(starts + 1):
        for name, candidate in candidates.items():
            start(candidate, event, seen[name] if number else Starts(), drop)
        console.print(f"page cache {DROPPED if drop else WARM}: {number} of {starts}")
    return seen


def start(candidate: Candidate, event: dict[str, Any], starts: Starts, drop: bool) -> None:
    """Start the candidate, send it one event, stop it, and add what was seen to starts."""
    with candidate.start() as running:
        if drop:
            drop_page_cache()
        begin = time.perf_counter()
        reply = running.invoke(event)
        starts.first_response.append((time.perf_counter() - begin) * 1e3)
        starts.init.append(running.init_milliseconds())
        starts.peak_megabytes.append(running.peak_megabytes())
    timing = reply.get("headers", {}).get("server-timing", "")
    starts.phases.append({name: float(ms) for name, ms in re.findall(r"init-([\w-]+);dur=([\d.]+)", timing)})


def print_ratios(seen: dict[str, dict[str, Starts]]) -> None:
    """Print how long INIT of this function takes as a multiple of the last candidate's, which started after it."""
    for cache, by_name in seen.items():
        name, other = list(by_name.items())[-1]
        console.print(f"page cache {cache}: INIT / INIT of {name}: {by_name[OURS].times_as_long_as(other):.3f}")


def table(
    candidates: dict[str, Candidate], seen: dict[str, dict[str, Starts]], footprints: dict[str, dict[str, float]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and the rows: medians, extremes, and ratios to the empty handler and to the peer."""
    columns = ["", "runs in", "page cache", "INIT ms", "x empty", "first response ms", "times faster than the peer"]
    columns += ["peak MB", "modules", "files opened", "MB read", "MB mapped", "phases ms"]
    rows = []
    for cache, by_name in seen.items():
        empty = statistics.median(by_name[EMPTY].init)
        peer = statistics.median(by_name[PEER].first_response) if PEER in by_name else None
        for name, starts in by_name.items():
            init, first = statistics.median(starts.init), statistics.median(starts.first_response)
            cells = [name, candidates[name].place, cache, spread(starts.init), f"{init / empty:.1f}"]
            cells += [spread(starts.first_response), f"{peer / first:.1f}" if peer else ""]
            cells += [f"{statistics.median(starts.peak_megabytes):.0f}"]
            cells += [f"{footprints[name][number]:.0f}" for number in NUMBERS]
            cells += [", ".join(f"{phase} {ms:.0f}" for phase, ms in starts.median_phases().items())]
            rows.append(tuple(cells))
    return columns, rows


def spread(values: list[float]) -> str:
    """Return the median with the least and the most of these values, as in "306 (255 to 429)"."""
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
