"""Cold starts under Lambda's own emulator: the function, an empty handler, and the usual ways to write a function.

With Docker all but sentence-transformers start from images, otherwise on this machine's own Python. Each start is a new
emulator and a new process. INIT is what the emulator reports. The first response is measured from outside:
from sending the event, which starts INIT, to the last byte of the reply.
"""

import argparse
import os
import re
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.bundles import make_bundle
from bench.function.candidates import EMPTY, OURS, PEERS_BY_LIBRARY, Candidate, make_candidates, make_peers
from bench.function.emulator import sample_event
from bench.function.image import MADE_WITH
from bench.report import console, make_provenance, report
from bench.texts import add_data_argument, read_texts

WRITES: tuple[str, ...] = ("cold_start",)
MEASURES: tuple[str, ...] = ("function.handler", *MADE_WITH)
WARM, DROPPED = "warm", "dropped"  # states of the page cache: the files are in memory, or the kernel forgot them
QUERY = {"text": "self driving cars navigation", "num_results": 5}


@dataclass(slots=True)
class Starts:
    """The starts of one candidate: milliseconds, megabytes, and the milliseconds of each phase."""

    init: list[float] = field(default_factory=list)
    first_response: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # processor time until the first response
    peak_megabytes: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)
    other_request: list[float] = field(default_factory=list)  # GET /info, which imports FastAPI in this function

    def median_phases(self) -> dict[str, float]:
        """Return the median of each phase that the function reported."""
        names = dict.fromkeys(name for phases in self.phases for name in phases)
        return {name: statistics.median(phases[name] for phases in self.phases if name in phases) for name in names}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=10, help="starts of each function")
    libraries = [*PEERS_BY_LIBRARY]
    parser.add_argument(
        "--against", nargs="*", choices=libraries, default=libraries, help="libraries of the peers; none: no peer"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(work, texts)
    candidates = make_candidates(work, bundle)
    candidates |= make_peers(work, bundle, texts, options.against)
    seen = {cache: measure(candidates, options.starts, cache) for cache in available_states()}
    places = {name: candidate.place for name, candidate in candidates.items()}
    columns, rows = table(places, seen)
    details = {cache: {name: asdict(starts) for name, starts in by_name.items()} for cache, by_name in seen.items()}
    content = {"starts": options.starts, "places": places, "seen": details}
    content["shares"] = {cache: {name: shares(by_name, name) for name in by_name} for cache, by_name in seen.items()}
    report("cold_start", columns, rows, content, make_provenance(texts.description(), candidates[OURS].python))
    return 0


def available_states() -> tuple[str, ...]:
    """Return the states of the page cache that this user can measure."""
    if os.geteuid() == 0:
        return WARM, DROPPED
    console.print("not root: starts with the page cache dropped are left out")
    return (WARM,)


def drop_page_cache() -> None:
    """Make the kernel forget the files that it holds in memory, so that the next start reads the disk."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def measure(candidates: Mapping[str, Candidate], starts: int, cache: str) -> dict[str, Starts]:
    """Start each candidate this many times, in turn, after a round that warms the page cache and is not counted."""
    seen = {name: Starts() for name in candidates}
    for number in range(starts + 1):
        for name, candidate in candidates.items():
            start(candidate, seen[name] if number else Starts(), cache)
        console.print(f"page cache {cache}: {number} of {starts}")
    return seen


def start(candidate: Candidate, starts: Starts, cache: str) -> None:
    """Start the candidate, send it one event, stop it, and add its milliseconds and megabytes to starts."""
    with candidate.start() as running:
        if cache == DROPPED:
            drop_page_cache()
        begin = time.perf_counter()
        reply = running.invoke(sample_event("/similar", QUERY))
        starts.first_response.append((time.perf_counter() - begin) * 1e3)
        starts.init.append(running.init_milliseconds())
        for values, value in zip((starts.peak_megabytes, starts.processor), running.usage(), strict=True):
            values.append(value)
        begin = time.perf_counter()
        running.invoke(sample_event("/info"))
        starts.other_request.append((time.perf_counter() - begin) * 1e3)
    timing = reply.get("headers", {}).get("server-timing", "")
    starts.phases.append({name: float(ms) for name, ms in re.findall(r"init-([\w-]+);dur=([\d.]+)", timing)})


def shares(seen: Mapping[str, Starts], name: str) -> dict[str, float]:
    """Return INIT and processor time of this function as shares of a candidate's: medians over the rounds."""
    ours, other = seen[OURS], seen[name]
    pairs = {"init": (ours.init, other.init), "processor": (ours.processor, other.processor)}
    return {key: statistics.median(a / b for a, b in zip(*both, strict=True)) for key, both in pairs.items()}


def table(places: Mapping[str, str], seen: dict[str, dict[str, Starts]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and the rows: medians, extremes, and ratios to the empty handler and to this function."""
    columns = ["", "runs in", "page cache", "INIT ms", "x empty", "CPU ms", "this function's share of INIT, CPU"]
    columns += ["first response ms", "peak MB", "first GET /info ms", "phases ms"]
    rows = []
    for cache, by_name in seen.items():
        empty = statistics.median(by_name[EMPTY].init)
        for name, starts in by_name.items():
            cells = [name, places[name], cache, spread(starts.init), f"{statistics.median(starts.init) / empty:.1f}"]
            cells += [f"{statistics.median(starts.processor):.0f}"]
            cells += [", ".join(f"{value:.2f}" for value in shares(by_name, name).values())]
            cells += [spread(starts.first_response), f"{statistics.median(starts.peak_megabytes):.0f}"]
            cells += [spread(starts.other_request)]
            cells += [", ".join(f"{phase} {ms:.0f}" for phase, ms in starts.median_phases().items())]
            rows.append(tuple(cells))
    return columns, rows


def spread(values: list[float]) -> str:
    """Return the median, the least and the greatest of these values, as in "306 (255 to 429)"."""
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
