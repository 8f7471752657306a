"""Cold starts under Lambda's own emulator: the function, an empty handler, and the usual ways to write a function.

With Docker all but sentence-transformers start from images, otherwise on this machine's own Python, for which torch's
CPU build is. Each start is a new emulator and a new process. INIT is what the emulator reports. The first response is
measured from outside: from sending the event, which starts INIT, to the last byte of the reply.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench import emulator
from bench.emulator import EMPTY_HANDLER, HANDLER, IMAGE, TASK, LocalFunction
from bench.report import PEERS, console, docker_problem, make_provenance, report, show
from bench.texts import Texts, add_data_argument, read_texts
from bench.work import (
    EXACT,
    NAIVE,
    find_emulator,
    function_package,
    function_python,
    make_bundle,
    make_models,
    peer_python,
)
from function.image.build_archive import KINDS

WARM, DROPPED = "warm", "dropped"  # states of the page cache: the files are in memory, or the kernel forgot them
QUERY = {"text": "self driving cars navigation", "num_results": 5}
OURS, EMPTY = "this function", "empty handler"
IN_BASE = " in Lambda's base image"
TRANSFORMERS, RUNTIME, FASTEMBED = "sentence-transformers", "ONNX Runtime", "fastembed"
PEERS_BY_LIBRARY = {library: f"FastAPI + {library}" for library in (RUNTIME, FASTEMBED, TRANSFORMERS)}
PRECISIONS = {RUNTIME: NAIVE, FASTEMBED: EXACT}  # fastembed's own models are float32
PEER_HANDLER = "fastapi_peer.handler"
ARCHIVE = "archive"  # the part with all compiled imports


@dataclass(slots=True)
class Starts:
    """The starts of one contender: milliseconds, megabytes, and the milliseconds of each phase."""

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
    parser.add_argument(
        "--without",
        nargs="+",
        choices=(ARCHIVE, *KINDS),
        help="start the function outside an image, whole and without each of these; print a table, write no result",
    )
    parser.add_argument(
        "--image", help="an image of another commit: start both images in turn; print a table, write no result"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(work, texts)
    if options.without:
        contenders = make_variants(work, bundle, options.without)
    elif options.image:
        contenders = make_contenders(work, bundle)
        contenders[options.image] = in_an_image(options.image, emulator.HANDLER)
    else:
        contenders = make_contenders(work, bundle) | make_peers(work, bundle, texts, options.against)
    seen = {cache: measure(contenders, options.starts, cache) for cache in available_states()}
    places = {name: contender.place for name, contender in contenders.items()}
    columns, rows = table(places, seen)
    if options.without or options.image:
        show(columns, rows)
        return 0
    details = {cache: {name: asdict(starts) for name, starts in by_name.items()} for cache, by_name in seen.items()}
    content = {"starts": options.starts, "places": places, "seen": details}
    content["shares"] = {cache: {name: shares(by_name, name) for name in by_name} for cache, by_name in seen.items()}
    report("cold_start", columns, rows, content, make_provenance(texts.description(), contenders[OURS].python))
    return 0


@dataclass(frozen=True, slots=True)
class Contender:
    """A function under test: where it runs, on which Python, and how it is started."""

    place: str
    python: str
    start: Callable[[], AbstractContextManager[emulator.Running]]


def make_contenders(work: Path, bundle: Path) -> dict[str, Contender]:
    """Return this function with this bundle and the empty one, in images if there is Docker, by name."""
    if not can_use_images():
        return make_variants(work, bundle)
    emulator.build_image(work, bundle)
    contenders = {}
    for name, base in ((EMPTY + IN_BASE, emulator.base_image()), (EMPTY, IMAGE)):
        tag = f"{IMAGE}-{'empty' if base == IMAGE else 'base'}"
        emulator.build_handler_image(base, tag, make_context(work / "empty-context", "empty_handler.py"))
        contenders[name] = in_an_image(tag, EMPTY_HANDLER)
    return contenders | {OURS: in_an_image(IMAGE, HANDLER)}


def can_use_images() -> bool:
    """Return whether there is Docker; print why not."""
    problem = docker_problem()
    if problem is not None:
        console.print(f"{problem}: measuring with Python {platform.python_version()} and without an image")
    return problem is None


def make_functions(work: Path, bundles: Mapping[str, Path]) -> dict[str, Contender]:
    """Return this function with each of these bundles, by their names; one image serves all of them."""
    if not can_use_images():
        return {name: make_variants(work, bundle)[OURS] for name, bundle in bundles.items()}
    emulator.build_image(work, next(iter(bundles.values())))
    volumes = {name: ("--volume", f"{bundle.absolute()}:{TASK}/bundle:ro") for name, bundle in bundles.items()}
    return {name: in_an_image(IMAGE, HANDLER, options) for name, options in volumes.items()}


def make_variants(work: Path, bundle: Path, left_out: Sequence[str] = ()) -> dict[str, Contender]:
    """Return the empty function and this one outside an image: whole, and without each of these parts of its archive.

    The parts are kinds of function/image/build_archive.py, or ARCHIVE for all of it.
    """
    python, variables = function_python(work), {"BUNDLE_DIR": str(bundle.absolute())}
    functions = {EMPTY: LocalFunction(python, EMPTY_HANDLER, PEERS, {})}
    for part in ("", *left_out):
        name = f"without {part}" if part else OURS
        functions[name] = LocalFunction(python, HANDLER, function_package(work, part), variables)
    return {name: outside_an_image(work, function) for name, function in functions.items()}


def make_peers(work: Path, bundle: Path, texts: Texts, libraries: Sequence[str]) -> dict[str, Contender]:
    """Return the peers with these libraries over the texts of this bundle, by name.

    An image of a peer is Lambda's base image with the newest packages. ONNX Runtime has a second one: this function's
    image, with its packages and the bytecode of all modules.
    """
    peers = {}
    for library in libraries:
        name, environment = PEERS_BY_LIBRARY[library], peer_environment(work, bundle, texts, library)
        if library == TRANSFORMERS or docker_problem() is not None:
            python = peer_python(work, requirements_of(library).stem)
            peers[name] = outside_an_image(work, LocalFunction(python, PEER_HANDLER, PEERS, environment))
            continue
        for base in (emulator.base_image(), IMAGE) if library == RUNTIME else (emulator.base_image(),):
            context = make_context(work / "peer-context", "fastapi_peer.py", environment)
            if base != IMAGE:
                shutil.copy2(requirements_of(library), context / "requirements.txt")
            suffix = "" if base == IMAGE else IN_BASE
            tag = f"{IMAGE}-{requirements_of(library).stem}{'' if base == IMAGE else '-base'}"
            emulator.build_handler_image(base, tag, context)
            inside = {"PEER_LIBRARY": library} | {name: f"{TASK}/{name}" for name in ("PEER_MODEL", "PEER_CORPUS")}
            options = [word for key, value in inside.items() for word in ("--env", f"{key}={value}")]
            peers[name + suffix] = in_an_image(tag, PEER_HANDLER, options)
    return peers


def requirements_of(library: str) -> Path:
    """Return the file with the packages of the peer with this library."""
    return PEERS / f"{library.replace(' ', '').lower()}.txt"


def make_context(folder: Path, handler: str, environment: Mapping[str, str] | None = None) -> Path:
    """Make a new folder to build the image of a handler from, and return it.

    Folders that the environment variables name are copied under the names of the variables.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy2(PEERS / handler, folder)
    (folder / "requirements.txt").touch()
    for name, value in (environment or {}).items():
        if Path(value).is_dir():
            shutil.copytree(value, folder / name)
    return folder


def peer_environment(work: Path, bundle: Path, texts: Texts, library: str) -> dict[str, str]:
    """Return the environment variables of a peer over the texts of this bundle, whose files are written first."""
    from semsearch.engine.bundle import INDEX
    from semsearch.engine.quantization import dequantize
    from semsearch.engine.tensors import map_tensors
    from semsearch.indexing.models.source import find_model

    corpus, model = work / f"peer-of-{bundle.name}", find_model(None, None)[0]
    if not (corpus / "texts.json").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        tensors = map_tensors(bundle / INDEX)
        np.save(corpus / "embeddings.npy", dequantize(tensors["codes"], tensors["scales"]))
        (corpus / "texts.json").write_text(json.dumps(texts.texts), encoding="utf-8")
    if library in PRECISIONS:
        folder = work / f"peer-{requirements_of(library).stem}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(make_models(work)[PRECISIONS[library]], folder / "model.onnx")
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copyfile(model / file, folder / file)
        model = folder
    return {"PEER_LIBRARY": library, "PEER_MODEL": str(model), "PEER_CORPUS": str(corpus), "HF_HUB_OFFLINE": "1"}


def in_an_image(image: str, handler: str, options: Sequence[str] = ()) -> Contender:
    """Return the contender that an image starts, from the image's own file system; `options` are docker's."""
    python = emulator.image_python(image)
    return Contender(f"image, Python {python}", python, partial(emulator.started, options, handler, image))


def outside_an_image(work: Path, function: LocalFunction) -> Contender:
    """Return the contender that runs on this machine's own Python."""
    python = platform.python_version()
    return Contender(f"no image, Python {python}", python, partial(emulator.emulated, find_emulator(work), function))


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


def measure(contenders: Mapping[str, Contender], starts: int, cache: str) -> dict[str, Starts]:
    """Start each contender this many times, in turn, after a round that warms the page cache and is not counted."""
    seen = {name: Starts() for name in contenders}
    for number in range(starts + 1):
        for name, contender in contenders.items():
            start(contender, seen[name] if number else Starts(), cache)
        console.print(f"page cache {cache}: {number} of {starts}")
    return seen


def start(contender: Contender, starts: Starts, cache: str) -> None:
    """Start the contender, send it one event, stop it, and add its milliseconds and megabytes to starts."""
    with contender.start() as running:
        if cache == DROPPED:
            drop_page_cache()
        begin = time.perf_counter()
        reply = running.invoke(emulator.sample_event("/similar", QUERY))
        starts.first_response.append((time.perf_counter() - begin) * 1e3)
        starts.init.append(running.init_milliseconds())
        for values, value in zip((starts.peak_megabytes, starts.processor), running.usage(), strict=True):
            values.append(value)
        begin = time.perf_counter()
        running.invoke(emulator.sample_event("/info"))
        starts.other_request.append((time.perf_counter() - begin) * 1e3)
    timing = reply.get("headers", {}).get("server-timing", "")
    starts.phases.append({name: float(ms) for name, ms in re.findall(r"init-([\w-]+);dur=([\d.]+)", timing)})


def shares(seen: Mapping[str, Starts], name: str) -> dict[str, float]:
    """Return INIT and processor time of this function as shares of a contender's: medians over the rounds."""
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
