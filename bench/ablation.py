"""What each way to start sooner is worth: the image that ships, without each of them in turn.

A round starts every variant once, in another order each time, so that the machine's moods fall on all alike; a
variant's worth is the median over the rounds of its INIT minus that of the whole. The interval is the bootstrap's.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.data import add_data_argument
from bench.environments import PEERS, PROJECT
from bench.events import http_event
from bench.image import HANDLER, IMAGE, TASK, build_image, docker, started
from bench.report import console, report
from bench.warm import headlines_bundle
from deploy.replacements import KINDS

WHOLE, EMPTY = "as it ships", "empty handler"
SEED = 11
RESAMPLES = 2_000
WARM, DROPPED = "page cache warm", "page cache dropped"

# text of function/handler.py, what stands for it, and what that leaves out
IN_THE_HANDLER = {
    "no-collection": ("no_garbage_collection()", "nullcontext()", "garbage is collected while importing"),
    "thread": (
        "settings.bundle_dir)\n",
        "settings.bundle_dir)\n    opening.exception()  # waits\n",
        "the model is opened before FastAPI is imported",
    ),
}
IN_THE_ENVIRONMENT = {
    "numpy-threads": ("OPENBLAS_NUM_THREADS", "NumPy starts a thread for each core"),
    "pydantic-plugins": ("PYDANTIC_DISABLE_PLUGINS", "pydantic looks for plugins in each package's metadata"),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to start: what is different, docker's options for it, and the handler."""

    meaning: str
    options: tuple[str, ...]
    handler: str = HANDLER


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="headlines in the index")
    parser.add_argument("--starts", type=int, default=30, help="starts of each variant, with a warm and a cold cache")
    parser.add_argument("--only", nargs="*", metavar="VARIANT", help="measure these, and the whole")
    parser.add_argument("--against", metavar="COMMIT", help="also this commit's function, to compare with")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    build_image(work, headlines_bundle(work, options.data, options.rows))
    variants = make_variants(work / "ablation", options.against)
    if options.only:
        variants = {name: variant for name, variant in variants.items() if name in (WHOLE, *options.only)}
    caches = [WARM, DROPPED] if os.geteuid() == 0 else [WARM]
    seen = {cache: measure(variants, options.starts, drop=cache == DROPPED) for cache in caches}
    rows = []
    for name, variant in variants.items():
        cells = []
        for cache in caches:
            times, whole = np.array(seen[cache][name]), np.array(seen[cache][WHOLE])
            low, worth, high = interval(times - whole)
            cells.append(f"{statistics.median(times):.0f}")
            cells.append("" if name == WHOLE else f"{worth:+.0f} ({low:+.0f} to {high:+.0f})")
        rows.append((name, variant.meaning, *cells))
    columns = [
        "without",
        "which means",
        *(f"{column}, {cache}" for cache in caches for column in ("INIT ms", "more ms")),
    ]
    report("ablation", columns, rows, {"starts": options.starts, "rows": options.rows, "init": seen})
    return 0


def interval(differences: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[float, float, float]:
    """Return the 2.5th percentile, the median and the 97.5th percentile of the median of resampled differences."""
    rng = np.random.default_rng(SEED)
    medians = np.median(rng.choice(differences, (RESAMPLES, len(differences))), axis=1)
    return float(np.percentile(medians, 2.5)), float(np.median(differences)), float(np.percentile(medians, 97.5))


def measure(variants: dict[str, Variant], starts: int, drop: bool) -> dict[str, list[float]]:
    """Return the milliseconds of INIT of each variant, one a round; the first round is not counted."""
    event = http_event("/similar", {"text": "self driving cars navigation", "num_results": 5})
    seen: dict[str, list[float]] = {name: [] for name in variants}
    order, shuffled = list(variants), random.Random(SEED)
    for number in range(starts + 1):
        shuffled.shuffle(order)
        for name in order:
            with started(variants[name].options, variants[name].handler) as container:
                if drop:
                    subprocess.run(["sync"], check=True)
                    Path("/proc/sys/vm/drop_caches").write_text("3\n")
                container.invoke(event)
                if number:
                    seen[name].append(container.init_milliseconds())
        console.print(f"{'page cache dropped' if drop else 'page cache warm'}: round {number} of {starts}")
    return seen


def make_variants(folder: Path, against: str | None) -> dict[str, Variant]:
    """Return the variants by name, each a folder with its own `function` that is laid over the image's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = {name: (f"without: {meaning}", ("--without", name)) for name, meaning in KINDS.items()}
    variants = {}
    for name, (meaning, arguments) in {WHOLE: ("", ()), **made}.items():
        variants[name] = Variant(meaning, mounted(fill(folder / name.replace(" ", "-"), arguments)))
    for name, (text, other, meaning) in IN_THE_HANDLER.items():
        variants[name] = Variant(meaning, mounted(fill(folder / name, (), (text, other))))
    for name, (variable, meaning) in IN_THE_ENVIRONMENT.items():
        variants[name] = Variant(meaning, (*variants[WHOLE].options, "--env", f"{variable}="))
    bare = fill(folder / "archive", ())
    (bare / "archive.bin").unlink()
    variants["archive"] = Variant("each module is found and read by itself, and none is replaced", mounted(bare))
    if against is not None:
        variants[against] = Variant(f"the function of {against}", mounted(fill_old(folder / "against", against)))
    empty = ("--volume", f"{PEERS / 'empty_handler.py'}:{TASK}/empty_handler.py:ro")
    variants[EMPTY] = Variant("nothing is imported", empty, "empty_handler.handler")
    return variants


def mounted(function: Path) -> tuple[str, ...]:
    """Return docker's options that lay a folder over the image's function."""
    return ("--volume", f"{function}:{TASK}/function:ro")


def fill(folder: Path, arguments: tuple[str, ...], change: tuple[str, str] | None = None) -> Path:
    """Make a folder's `function`, with a change in its handler or its archive, compiled in the image; return it."""
    ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
    shutil.copytree(PROJECT / "function", folder / "function", ignore=ignored)
    shutil.copytree(PROJECT / "deploy", folder / "deploy", ignore=ignored)
    if change is not None:
        handler = folder / "function" / "handler.py"
        text = handler.read_text(encoding="utf-8")
        if change[0] not in text:
            raise SystemExit(f"{handler}: has no {change[0]!r} to leave out; correct bench/ablation.py")
        docstring, quotes, rest = text.partition('"""\n\n')
        imports = "from contextlib import nullcontext\n"
        handler.write_text(docstring + quotes + imports + rest.replace(*change), encoding="utf-8")
    build = ["python3", "-m", "deploy.build_archive", "--out", "function/archive.bin", *arguments]
    in_the_image(folder, " ".join(build) + " && python3 deploy/bytecode.py .")
    return folder / "function"


def fill_old(folder: Path, commit: str) -> Path:
    """Make the `function` of an older commit, with the archive that its image has; return it."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "function"], cwd=PROJECT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    shutil.copytree(PROJECT / "deploy", folder / "deploy")
    made_by = "function.quick_start" if (folder / "function" / "quick_start").exists() else "deploy.build_archive"
    in_the_image(folder, f"python3 -m {made_by} && python3 deploy/bytecode.py .")
    return folder / "function"


def in_the_image(folder: Path, command: str) -> None:
    """Run a command with the image's Python and libraries in a folder, as root; what it writes stays there."""
    volume, path = f"{folder}:/made", f"PYTHONPATH=/made:{TASK}"
    docker(
        *("run", "--rm", "--user", "0", "--volume", volume, "--workdir", "/made", "--env", path),
        *("--entrypoint", "sh", IMAGE, "-c", command),
    )
