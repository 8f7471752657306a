"""What each way to start sooner is worth: the image that ships is started without each of them in turn.

A round starts every variant once, in a random order, so that a busy machine slows all variants alike. The image as it
ships takes part twice: the difference between it and its copy is noise. The worth of a way is the median over the
rounds of the variant's INIT minus the mean INIT of the whole and its copy; the interval is a bootstrap's.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.bundles import make_bundle
from bench.function.cold_start import DROPPED, QUERY, available_states, drop_page_cache
from bench.function.emulator import TASK, sample_event
from bench.function.image import EMPTY_HANDLER, HANDLER, IMAGE, MADE_WITH, build_image, docker, image_python
from bench.report import PEERS, PROJECT, console, make_provenance, report, require_docker
from bench.texts import add_data_argument, read_texts
from deploy.replacements import KINDS

WRITES: tuple[str, ...] = ("ablation",)
MEASURES: tuple[str, ...] = ("function.handler", *MADE_WITH)
WHOLE, COPY, ARCHIVE, EMPTY = "as it ships", "a copy of it", "archive", "empty handler"
SEED = 11
RESAMPLES = 2_000

# by name: a text of function/handler.py, the text that replaces it, and what the handler then does
IN_THE_HANDLER = {
    "no-collection": ("no_garbage_collection()", "nullcontext()", "garbage is collected while importing"),
    "thread": (
        "settings.bundle_dir)\n",
        "settings.bundle_dir)\n    opening.exception()  # waits\n",
        "the model is opened before the app's modules are imported",
    ),
}
IN_THE_ENVIRONMENT = {
    "numpy-threads": ("OPENBLAS_NUM_THREADS", "NumPy starts a thread for each core"),
    "pydantic-plugins": ("PYDANTIC_DISABLE_PLUGINS", "pydantic looks for plugins in each package's metadata"),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to start: its difference in words, the folder of its function, its handler."""

    meaning: str
    folder: Path
    handler: str = HANDLER
    unset: str = ""  # an environment variable of the image that it starts without


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=30, help="starts of each variant, with a warm and a cold cache")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    require_docker()
    texts = read_texts(options.data, options.rows)
    build_image(work, make_bundle(work, texts))
    variants = make_variants(work / "ablation")
    seen = {cache: measure(work / "ablation", variants, options.starts, cache) for cache in available_states()}
    columns, rows = table({name: variant.meaning for name, variant in variants.items()}, seen)
    details = {"starts": options.starts, "rows": len(texts.texts), "init": seen}
    report("ablation", columns, rows, details, make_provenance(texts.description(), image_python()))
    return 0


def table(
    meanings: Mapping[str, str], seen: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and the rows: the whole, its copy, and the others, those worth most with a warm cache first.

    seen has the milliseconds of INIT in each round, by state of the page cache and by variant.
    """
    columns = ["without", "which means"]
    columns += [f"{column}, page cache {cache}" for cache in seen for column in ("INIT ms", "more ms")]
    worth = {
        cache: {
            name: interval(np.array(times) - np.mean([by_name[WHOLE], by_name[COPY]], axis=0))
            for name, times in by_name.items()
        }
        for cache, by_name in seen.items()
    }
    first = next(iter(worth.values()))
    rows = []
    for name in [WHOLE, COPY, *sorted(set(meanings) - {WHOLE, COPY}, key=lambda name: -first[name][1])]:
        cells = [name, meanings[name]]
        for cache, by_name in seen.items():
            low, median, high = worth[cache][name]
            cells.append(f"{statistics.median(by_name[name]):.0f}")
            cells.append("" if name == WHOLE else f"{median:+.0f} ({low:+.0f} to {high:+.0f})")
        rows.append(tuple(cells))
    return columns, rows


def interval(differences: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[float, float, float]:
    """Bootstrap the median difference: return the low end, the median, and the high end of its 95 % interval."""
    rng = np.random.default_rng(SEED)
    medians = np.median(rng.choice(differences, (RESAMPLES, len(differences))), axis=1)
    return float(np.percentile(medians, 2.5)), float(np.median(differences)), float(np.percentile(medians, 97.5))


def measure(folder: Path, variants: Mapping[str, Variant], starts: int, cache: str) -> dict[str, list[float]]:
    """Return the milliseconds of INIT of each variant, one a round; the first round is not counted.

    All starts happen in one container. `folder`, which holds the variants, is mounted into it.
    """
    seen: dict[str, list[float]] = {name: [] for name in variants}
    order, shuffled = list(variants), random.Random(SEED)
    mounts = ("--volume", f"{folder}:/variants:ro", "--volume", f"{PROJECT / 'bench'}:/code/bench:ro")
    python = ("--workdir", "/code", "--env", "PYTHONDONTWRITEBYTECODE=1", "--entrypoint", "python3")
    command = ["docker", "run", "--rm", "--interactive", "--tmpfs", "/tmp", *mounts, *python, IMAGE]
    with subprocess.Popen(
        [*command, "-m", "bench.function.emulator"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as container:
        assert container.stdin is not None
        assert container.stdout is not None
        for number in range(starts + 1):
            shuffled.shuffle(order)
            for name in order:
                variant = variants[name]
                if cache == DROPPED:
                    drop_page_cache()
                start = {"folder": f"/variants/{variant.folder.name}", "handler": variant.handler}
                event = sample_event("/similar", QUERY)
                container.stdin.write(json.dumps({**start, "unset": variant.unset, "event": event}) + "\n")
                container.stdin.flush()
                answer = container.stdout.readline()
                if not answer:
                    raise SystemExit(f"{name}: the function does not start; its error is above")
                if number:
                    seen[name].append(float(answer))
            console.print(f"page cache {cache}: round {number} of {starts}")
        container.stdin.close()
    return seen


def make_variants(folder: Path) -> dict[str, Variant]:
    """Return the variants by name, each in a folder of its own in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    whole = fill(folder / "whole")
    shutil.copytree(whole, folder / "copy")
    variants = {WHOLE: Variant("", whole), COPY: Variant("the same again: its difference is noise", folder / "copy")}
    for name, meaning in KINDS.items():
        variants[name] = Variant(f"without: {meaning}", fill(folder / name, ("--without", name)))
    for name, (text, other, meaning) in IN_THE_HANDLER.items():
        variants[name] = Variant(meaning, fill(folder / name, change=(text, other)))
    for name, (variable, meaning) in IN_THE_ENVIRONMENT.items():
        variants[name] = Variant(meaning, whole, unset=variable)
    bare = fill(folder / ARCHIVE)
    (bare / "function" / "archive.bin").unlink()
    variants[ARCHIVE] = Variant("each module is found and read by itself, and none is replaced", bare)
    (folder / "empty").mkdir()
    shutil.copy2(PEERS / "empty_handler.py", folder / "empty")
    variants[EMPTY] = Variant("nothing is imported", folder / "empty", EMPTY_HANDLER)
    return variants


def fill(folder: Path, arguments: Sequence[str] = (), change: Sequence[str] = ()) -> Path:
    """Fill a folder with the compiled `function` and its archive, and return it.

    arguments are those of deploy.build_archive; change is a text of the handler and the text that replaces it.
    """
    for name in ("function", "deploy"):
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        shutil.copytree(PROJECT / name, folder / name, ignore=ignored)
    if change:
        handler = folder / "function" / "handler.py"
        text = handler.read_text(encoding="utf-8")
        if change[0] not in text:
            raise SystemExit(f"{handler}: has no {change[0]!r} to leave out; correct bench/function/ablation.py")
        docstring, quotes, rest = text.partition('"""\n\n')
        rest = "from contextlib import nullcontext\n" + rest.replace(change[0], change[1])
        handler.write_text(docstring + quotes + rest, encoding="utf-8")
    build = f"python3 -m deploy.build_archive --out function/archive.bin {' '.join(arguments)}"
    docker(
        *("run", "--rm", "--user", "0", "--volume", f"{folder}:/made", "--workdir", "/made"),
        *("--env", f"PYTHONPATH=/made:{TASK}", "--entrypoint", "sh", IMAGE),
        *("-c", f"{build} && python3 deploy/bytecode.py ."),
    )
    return folder
