"""Cold starts under Lambda's own emulator: the function, an empty handler, and the usual ways to write a function.

`cold-start` runs all of them on this machine's own Python, each with its packages compiled. Each start is a new
emulator and a new process. INIT is what the emulator reports. The first response is measured from outside: from sending
the event, which starts INIT, to the last byte of the reply.

`memory` gives the function the share of a core that Lambda gives each memory size. A function with M megabytes has
M / 1,769 of a core; INIT has at least a whole one. A control group limits the core here. Its quota is counted over
20 ms, so a request that has used its share waits for the next 20 ms.
"""

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench import DATA, PEERS, WORK, Missing, emulator
from bench.emulator import HANDLER, LocalFunction
from bench.tables import as_markdown, make_provenance, report
from bench.work import (
    EXACT,
    NAIVE,
    Texts,
    find_emulator,
    function_package,
    function_python,
    make_bundle,
    make_models,
    peer_python,
    read_texts,
    short_queries,
)
from semsearch.engine.bundle import INDEX
from semsearch.engine.quantization import dequantize
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.models.source import find_model

ROWS = 30_000  # texts in the index
WARM, DROPPED = "warm", "dropped"  # states of the page cache: the files are in memory, or the kernel forgot them
QUERY = {"text": "self driving cars navigation", "num_results": 5}
OURS, EMPTY = "this function", "empty handler"
TRANSFORMERS, RUNTIME, FASTEMBED = "sentence-transformers", "ONNX Runtime", "fastembed"
LIBRARIES = (RUNTIME, FASTEMBED, TRANSFORMERS)
PRECISIONS = {RUNTIME: NAIVE, FASTEMBED: EXACT}  # fastembed's own models are float32
# dollars for x86_64 in us-east-1, of a second with a gigabyte and of a request: https://aws.amazon.com/lambda/pricing/
GIGABYTE_SECOND, REQUEST = 0.0000166667, 0.20 / 1e6
SIZES = (512, 1_024, 1_769, 3_008)  # megabytes of memory
FULL_CORE = 1_769  # megabytes that come with a whole core; https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PERIOD = 20_000  # microseconds over which the quota of a control group is counted
WARM_UP = 50  # first requests, which are not counted
# The least a Lambda function can be: what the emulator, the runtime and the interpreter take by themselves.
EMPTY_FUNCTION = """
def handler(event, context):
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": "{}"}
"""


@dataclass(slots=True)
class Starts:
    """The starts of one contender: milliseconds, megabytes, and the milliseconds of each phase."""

    init: list[float] = field(default_factory=list)
    first_response: list[float] = field(default_factory=list)
    peak_megabytes: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)

    def median_phases(self) -> dict[str, float]:
        """Return the median of each phase that the function reported."""
        names = dict.fromkeys(name for phases in self.phases for name in phases)
        return {name: statistics.median(phases[name] for phases in self.phases if name in phases) for name in names}


def cold_start(*, starts: int = 8, without: Sequence[str] = (), work: Path = WORK, data: Path = DATA) -> None:
    """How long a start takes, beside an empty function and the usual ways to write one.

    Args:
        starts: starts of each function.
        without: kinds of function/image/build_archive.py, or `archive`: start the function whole and without each of
            these parts; print a table, write no result.
    """
    work = work.absolute()
    texts = read_texts(data, ROWS)
    bundle = make_bundle(work, texts)
    functions = {EMPTY: make_empty(work), OURS: make_function(work, bundle)}
    if without:
        functions |= {f"without {part}": make_function(work, bundle, part) for part in without}
    else:
        functions |= {f"FastAPI + {library}": make_peer(work, bundle, texts, library) for library in LIBRARIES}
    seen = {cache: measure(work, functions, starts, cache) for cache in available_states()}
    columns, rows = table(seen)
    if without:
        print(as_markdown(columns, rows))
        return
    details = {cache: {name: asdict(found) for name, found in by_name.items()} for cache, by_name in seen.items()}
    report("cold_start", columns, rows, {"starts": starts, "seen": details}, make_provenance(texts.description()))


def make_empty(work: Path) -> LocalFunction:
    """Return the empty function, on the Python that this one runs on."""
    folder = work / "empty-function"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "empty_handler.py").write_text(EMPTY_FUNCTION, encoding="utf-8")
    return LocalFunction(function_python(work), "empty_handler.handler", folder, {})


def make_function(work: Path, bundle: Path, without: str = "") -> LocalFunction:
    """Return this function with a bundle. `without` is a kind of module changes that its archive leaves out."""
    package, environment = function_package(work, without), {"BUNDLE_DIR": str(bundle.absolute())}
    return LocalFunction(function_python(work), HANDLER, package, environment)


def make_peer(work: Path, bundle: Path, texts: Texts, library: str) -> LocalFunction:
    """Return the peer with a library over the texts of this bundle."""
    python = peer_python(work, file_name(library))
    return LocalFunction(python, "fastapi_peer.handler", PEERS, peer_environment(work, bundle, texts, library))


def file_name(library: str) -> str:
    """Return the name of the file in bench/peers that lists the packages of a library's peer."""
    return library.replace(" ", "").lower()


def peer_environment(work: Path, bundle: Path, texts: Texts, library: str) -> dict[str, str]:
    """Return the environment variables of a peer over the texts of this bundle, whose files are written first."""
    corpus, model = work / f"peer-of-{bundle.name}", find_model(None, None)[0]
    if not (corpus / "texts.json").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        tensors = map_tensors(bundle / INDEX)
        np.save(corpus / "embeddings.npy", dequantize(tensors["codes"], tensors["scales"]))
        (corpus / "texts.json").write_text(json.dumps(texts.texts), encoding="utf-8")
    if library in PRECISIONS:
        folder = work / f"peer-{file_name(library)}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(make_models(work)[PRECISIONS[library]], folder / "model.onnx")
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copyfile(model / file, folder / file)
        model = folder
    return {"PEER_LIBRARY": library, "PEER_MODEL": str(model), "PEER_CORPUS": str(corpus), "HF_HUB_OFFLINE": "1"}


def available_states() -> tuple[str, ...]:
    """Return the states of the page cache that this user can measure."""
    if os.geteuid() == 0:
        return WARM, DROPPED
    print("not root: starts with the page cache dropped are left out")
    return (WARM,)


def measure(work: Path, functions: Mapping[str, LocalFunction], starts: int, cache: str) -> dict[str, Starts]:
    """Start each function this many times, in turn, after a round that warms the page cache and is not counted."""
    seen = {name: Starts() for name in functions}
    for number in range(starts + 1):
        for name, function in functions.items():
            start(find_emulator(work), function, seen[name] if number else Starts(), cache)
        print(f"page cache {cache}: {number} of {starts}", flush=True)
    return seen


def start(program: Path, function: LocalFunction, starts: Starts, cache: str) -> None:
    """Start the function, send it one event, stop it, and add its milliseconds and megabytes to starts."""
    with emulator.emulated(program, function) as running:
        if cache == DROPPED:  # the next start reads the disk
            subprocess.run(["sync"], check=True)
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
        begin = time.perf_counter()
        reply = running.invoke(emulator.sample_event("/similar", QUERY))
        starts.first_response.append((time.perf_counter() - begin) * 1e3)
        starts.init.append(running.init_milliseconds())
        starts.peak_megabytes.append(running.peak_megabytes())
    timing = reply.get("headers", {}).get("server-timing", "")
    starts.phases.append({name: float(ms) for name, ms in re.findall(r"init-([\w-]+);dur=([\d.]+)", timing)})


def table(seen: Mapping[str, Mapping[str, Starts]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and the rows: medians, extremes, and INIT of this function as a share of each row's."""
    columns = ["", "page cache", "INIT ms", "this function's share", "first response ms", "peak MB", "phases ms"]
    rows = []
    for cache, by_name in seen.items():
        for name, starts in by_name.items():
            share = statistics.median(own / other for own, other in zip(by_name[OURS].init, starts.init, strict=True))
            cells = [name, cache, spread(starts.init), f"{share:.2f}", spread(starts.first_response)]
            cells += [f"{statistics.median(starts.peak_megabytes):.0f}"]
            cells += [", ".join(f"{phase} {ms:.0f}" for phase, ms in starts.median_phases().items())]
            rows.append(tuple(cells))
    return columns, rows


def spread(values: list[float]) -> str:
    """Return the median, the least and the greatest of these values, as in "306 (255 to 429)"."""
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def memory(*, starts: int = 5, requests: int = 300, work: Path = WORK, data: Path = DATA) -> None:
    """How long starts and requests take with each memory size, and what they cost.

    Args:
        starts: cold starts of each size.
        requests: warm requests of each size.
    """
    work = work.absolute()
    texts = read_texts(data, ROWS)
    queries = short_queries(data)
    function = make_function(work, make_bundle(work, texts))
    rows, details = [], {}
    for size in SIZES:
        seen = details[str(size)] = measure_size(find_emulator(work), function, size, queries, starts, requests)
        mean = statistics.mean(seen["warm"])
        cells = [f"{size:,}", f"{size / FULL_CORE:.2f}", f"{statistics.median(seen['init']):.0f}"]
        cells += [f"{statistics.median(seen['first']):.1f}", f"{statistics.median(seen['warm']):.1f}"]
        cells += [f"{mean:.1f}", f"{np.percentile(seen['warm'], 99):.1f}"]
        cells += [f"{max(seen['peak']):.0f}"]
        billed = math.ceil(mean) / 1000 * size / 1024 * GIGABYTE_SECOND  # started milliseconds count
        rows.append((*cells, f"{(billed + REQUEST) * 1e6:.2f}"))
        print(f"{size} MB measured", flush=True)
    columns = ["memory MB", "cores", "INIT ms", "first request ms", "warm p50 ms", "warm mean ms", "warm p99 ms"]
    columns += ["peak MB", "$ per million requests"]
    report("memory", columns, rows, {"seen": details}, make_provenance(texts.description()))


def measure_size(
    program: Path, function: LocalFunction, size: int, queries: Sequence[str], starts: int, requests: int
) -> dict[str, list[float]]:
    """Return milliseconds and megabytes of the function with the core of this many megabytes of memory.

    The function is started `starts` times; the last one is sent the warm requests too.
    """
    seen: dict[str, list[float]] = {"init": [], "first": [], "warm": [], "peak": []}
    for number in range(starts):
        with emulator.emulated(program, function) as running:
            limit_cores(max(1.0, size / FULL_CORE), running.process)
            running.invoke(emulator.sample_event("/similar", {"text": queries[0]}))
            seen["init"].append(running.init_milliseconds())
            seen["first"].append(running.request_milliseconds()[0] - seen["init"][-1])
            if number == starts - 1:
                limit_cores(size / FULL_CORE)
                for count in range(requests + WARM_UP):
                    running.invoke(emulator.sample_event("/similar", {"text": queries[count % len(queries)]}))
                seen["warm"] = running.request_milliseconds()[1 + WARM_UP :]
            seen["peak"].append(running.peak_megabytes())
    return seen


def limit_cores(cores: float, *processes: int) -> None:
    """Limit these processes, and those that they start, to a number of cores by a control group of this bench.

    cores is a share of one core, such as 0.58, or more than one.

    Raises Missing if this user cannot make a control group.
    """
    root = Path("/sys/fs/cgroup")
    is_new = (root / "cgroup.controllers").exists()  # version 2 of control groups
    group = root / ("bench" if is_new else "cpu/bench")
    limits = {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{round(cores * PERIOD)}"}
    if is_new:
        limits = {"cpu.max": f"{round(cores * PERIOD)} {PERIOD}"}
    try:
        group.mkdir(exist_ok=True)
        for name, limit in limits.items():
            (group / name).write_text(limit)
        for process in processes:
            (group / "cgroup.procs").write_text(str(process))
    except OSError as error:
        raise Missing(f"{group}: {error.strerror}; run this as root, with control groups for the processor") from error
