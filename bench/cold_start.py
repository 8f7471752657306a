"""Cold starts under Lambda's own emulator: the function, an empty one, and FastAPI with sentence-transformers.

Every start is a new emulator and a new process. INIT is what the emulator reports; the first response is measured from
outside, from sending the event, which starts INIT, to the last byte of the answer.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench.data import add_data_argument, read_headlines
from bench.emulator import Candidate, emulated
from bench.environments import PEERS, emulator, function_package, function_python, peer_python
from bench.events import http_event
from bench.imports import report_imports
from bench.report import RESULTS, console, report
from bench.warm import EMPTY, OURS, headlines_bundle
from export.source import find_model
from function.engine.bundle import INDEX
from function.engine.quantization import dequantize
from function.engine.tensors import map_tensors

PEER = "FastAPI + sentence-transformers"
FIRST_REQUEST = "first request"
FOOTPRINTS = ("modules", "files_opened", "megabytes_read", "megabytes_mapped")
WARM_CACHE, DROPPED_CACHE = "page cache warm", "page cache dropped"


@dataclass(slots=True)
class Starts:
    """What was seen of a candidate's starts, in milliseconds and megabytes."""

    init: list[float] = field(default_factory=list)
    first_response: list[float] = field(default_factory=list)
    peak_megabytes: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="headlines in the index")
    parser.add_argument("--starts", type=int, default=10, help="starts of each function")
    parser.add_argument("--no-peer", action="store_true", help="leave FastAPI + sentence-transformers out")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    rie = emulator(options.work)
    candidates = make_candidates(options)
    is_root = os.geteuid() == 0
    if not is_root:
        console.print("not root: starts with the page cache dropped are left out")
    results: dict[str, dict[str, Starts]] = {}
    for cache in (WARM_CACHE, DROPPED_CACHE) if is_root else (WARM_CACHE,):
        results[cache] = {name: Starts() for name in candidates}
        for number in range(options.starts + 1):
            for name, candidate in candidates.items():
                if cache == DROPPED_CACHE:
                    subprocess.run(["sync"], check=True)
                    Path("/proc/sys/vm/drop_caches").write_text("3\n")
                start(rie, candidate, results[cache][name] if number else Starts())  # the first warms the cache
            console.print(f"{cache}: {number} of {options.starts}")
    footprints = {name: footprint(candidate) for name, candidate in candidates.items()}
    write(results, footprints, options.starts)
    report_imports(candidates[OURS])
    return 0


def make_candidates(options: argparse.Namespace) -> dict[str, Candidate]:
    """Give the functions under test over the same corpus."""
    work = options.work.absolute()
    bundle = headlines_bundle(work, options.data, options.rows)
    python = function_python(work)
    query = http_event("/similar", {"text": "self driving cars navigation", "num_results": 5})
    ours = {"BUNDLE_DIR": str(bundle), "POWERTOOLS_SERVICE_NAME": "bench"}
    found = {
        EMPTY: Candidate(python, "empty_handler.handler", PEERS, {}, query),
        OURS: Candidate(python, "function.handler.handler", function_package(work), ours, query),
    }
    if not options.no_peer:
        corpus = work / f"peer-corpus-{options.rows}"
        if not (corpus / "texts.json").exists():
            corpus.mkdir(parents=True, exist_ok=True)
            tensors = map_tensors(bundle / INDEX)
            np.save(corpus / "embeddings.npy", dequantize(tensors["codes"], tensors["scales"]))
            (corpus / "texts.json").write_text(json.dumps(read_headlines(options.data, options.rows)))
        environment = {"PEER_MODEL": str(find_model(None, None)[0]), "PEER_CORPUS": str(corpus), "HF_HUB_OFFLINE": "1"}
        peer = "fastapi_sentence_transformers.handler"
        found[PEER] = Candidate(peer_python(work), peer, PEERS, environment, query)
    return found


def start(rie: Path, candidate: Candidate, starts: Starts) -> None:
    """Start the candidate once, ask it once, and stop it; what was seen is added to starts."""
    with emulated(rie, candidate) as running:
        begin = time.perf_counter()
        reply = running.invoke(candidate.event)
        first_response = (time.perf_counter() - begin) * 1e3
        if reply.get("statusCode") != 200:
            raise SystemExit(f"{candidate.handler} answered {reply}\n{running.printed()[-2000:]}")
        starts.init.append(running.init_milliseconds())
        starts.first_response.append(first_response)
        starts.peak_megabytes.append(running.peak_megabytes())
    timing = reply.get("headers", {}).get("server-timing", "")
    starts.phases.append({name: float(ms) for name, ms in re.findall(r"init-([\w-]+);dur=([\d.]+)", timing)})


FOOTPRINT = """
import importlib, json, sys
files = set()
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and not arguments[2] & 3:
        files.add(arguments[0])
sys.addaudithook(hook)
def read():
    return int(open("/proc/self/io").read().split("rchar: ")[1].split()[0])
def mapped():
    lines = open("/proc/self/smaps").read().splitlines()
    total, of_file = 0, False
    for line in lines:
        words = line.split()
        if "-" in words[0] and ":" not in words[0]:
            of_file = len(words) > 5 and words[5].startswith("/")
        elif words[0] == "Rss:" and of_file:
            total += int(words[1])
    return total / 1024
before, mapped_before = read(), mapped()
importlib.import_module(sys.argv[1])
print(json.dumps({
    "modules": len(sys.modules),
    "files_opened": len(files),
    "megabytes_read": (read() - before) / 1e6,
    "megabytes_mapped": mapped() - mapped_before,
}))
"""


def footprint(candidate: Candidate) -> dict[str, float]:
    """Give what INIT takes: modules, files opened by Python, megabytes read, megabytes of mapped files touched."""
    module = candidate.handler.rpartition(".")[0]
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONPATH": "."} | candidate.environment
    command = [str(candidate.python), "-c", FOOTPRINT, module]
    done = subprocess.run(command, cwd=candidate.folder, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def write(results: dict[str, dict[str, Starts]], footprints: dict[str, dict[str, float]], starts: int) -> None:
    """Report the medians, the spread and the ratios, and draw them."""
    columns = ["", "INIT ms", "x empty", "first response ms", "times faster than the peer", "peak MB"]
    columns += ["modules", "files opened", "MB read", "MB mapped", "phases ms"]
    rows = []
    for cache, by_name in results.items():
        empty = statistics.median(by_name[EMPTY].init)
        peer = statistics.median(by_name[PEER].first_response) if PEER in by_name else None
        for name, seen in by_name.items():
            init, first = statistics.median(seen.init), statistics.median(seen.first_response)
            rows.append(
                (
                    f"{name}, {cache}",
                    f"{init:.0f} ({min(seen.init):.0f} to {max(seen.init):.0f})",
                    f"{init / empty:.1f}",
                    f"{first:.0f} ({min(seen.first_response):.0f} to {max(seen.first_response):.0f})",
                    f"{peer / first:.1f}" if peer else "",
                    f"{statistics.median(seen.peak_megabytes):.0f}",
                    *(f"{footprints[name][key]:.0f}" for key in FOOTPRINTS),
                    ", ".join(f"{phase} {ms:.0f}" for phase, ms in median_phases(seen).items()),
                )
            )
    details = {cache: {name: asdict(seen) for name, seen in by_name.items()} for cache, by_name in results.items()}
    report("cold_start", columns, rows, {"starts": starts, "footprint": footprints, "seen": details})
    draw(results)


def draw(results: dict[str, dict[str, Starts]]) -> None:
    """Draw each function's median start as a bar of its phases."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "cold-start"  # the same picture from the same numbers
    labels, stacks = [], []
    for cache, by_name in results.items():
        for name, seen in by_name.items():
            labels.append(f"{name}\n{cache}")
            phases = median_phases(seen)
            init, first = statistics.median(seen.init), statistics.median(seen.first_response)
            rest = "interpreter and runtime" if phases or name == EMPTY else "INIT, not told apart"
            stacks.append({rest: max(0.0, init - sum(phases.values())), **phases, FIRST_REQUEST: first - init})
    seen_names = dict.fromkeys(phase for stack in stacks for phase in stack if phase != FIRST_REQUEST)
    names = [*seen_names, FIRST_REQUEST]
    figure, axes = plt.subplots(figsize=(9, 0.7 * len(labels) + 1.6))
    left = np.zeros(len(labels))
    for number, name in enumerate(names):
        widths = np.array([stack.get(name, 0.0) for stack in stacks])
        axes.barh(labels, widths, left=left, label=name, color=plt.get_cmap("tab10")(number))
        left += widths
    for place, total in enumerate(left):
        axes.text(total, place, f" {total:,.0f} ms", va="center")
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds from sending the first event to its answer, median; logarithmic beyond 500")
    axes.set_xscale("symlog", linthresh=500, linscale=2)
    axes.set_xlim(0, left.max() * 2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "cold_start.svg", metadata={"Date": None})
    figure.savefig(RESULTS.parent.parent / "build" / "cold_start.png", dpi=110)
    plt.close(figure)


def median_phases(seen: Starts) -> dict[str, float]:
    """Give the median of each phase that the function told of."""
    names = dict.fromkeys(name for phases in seen.phases for name in phases)
    return {name: statistics.median(phases[name] for phases in seen.phases if name in phases) for name in names}
