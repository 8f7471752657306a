"""What each way to start sooner is worth: the image that ships is started without each of them in turn.

A round starts every variant once, in a random order, so that a busy machine slows all variants alike. The whole is
there twice: what a copy of it differs by is what this machine cannot tell. The worth of a way is the median over the
rounds of the variant's INIT minus the mean INIT of the whole and its copy; the interval is a bootstrap's.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.folders import PEERS, PROJECT
from bench.image import EMPTY_HANDLER, HANDLER, IMAGE, TASK, build_image, docker, image_python
from bench.needs import require_docker
from bench.page_cache import DROPPED, WARM, available_states, drop_page_cache
from bench.provenance import make_provenance
from bench.report import console, report
from bench.sample_event import sample_event
from bench.texts import read_texts
from deploy.replacements import KINDS

WRITES: tuple[str, ...] = ("ablation",)
MEASURES: tuple[str, ...] = ("function", "deploy", "Dockerfile", "requirements.txt")
WHOLE, COPY, ARCHIVE, ZIP, EMPTY = "as it ships", "a copy of it", "archive", "zip", "empty handler"
SEED = 11
RESAMPLES = 2_000

# text of function/handler.py, the text that replaces it, and what the handler then does
IN_THE_HANDLER = {
    "no-collection": ("no_garbage_collection()", "nullcontext()", "garbage is collected while importing"),
    "thread": (
        "settings.bundle_dir)\n",
        "settings.bundle_dir)\n    opening.exception()  # waits\n",
        "the model is opened before FastAPI is imported",
    ),
}
# Lambda's runtime has imported a part of the standard library before; the rest comes from the zip
USE_ZIP = (
    "use_archive()\n",
    "import sys; sys.path.insert(0, __file__.replace('function/handler.py', 'packages.zip'))\n",
)
IN_THE_ENVIRONMENT = {
    "numpy-threads": ("OPENBLAS_NUM_THREADS", "NumPy starts a thread for each core"),
    "pydantic-plugins": ("PYDANTIC_DISABLE_PLUGINS", "pydantic looks for plugins in each package's metadata"),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to start: what is different, the folder that its function is in, and what else differs."""

    meaning: str
    folder: Path
    handler: str = HANDLER
    unset: str = ""  # an environment variable of the image that it starts without


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=30, help="starts of each variant, with a warm and a cold cache")
    parser.add_argument("--only", nargs="*", metavar="VARIANT", help="measure only these beside the whole")
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit's function too")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute()
    require_docker()
    texts = read_texts(options.data, options.rows)
    build_image(work, make_bundle(work, texts))
    variants = make_variants(work / "ablation", options.only, options.against)
    caches = available_states()
    seen = {cache: measure(work / "ablation", variants, options.starts, drop=cache == DROPPED) for cache in caches}
    rows = []
    for name, variant in variants.items():
        cells = []
        for cache in caches:
            times = np.array(seen[cache][name])
            low, worth, high = interval(times - np.mean([seen[cache][WHOLE], seen[cache][COPY]], axis=0))
            cells.append(f"{statistics.median(times):.0f}")
            cells.append("" if name == WHOLE else f"{worth:+.0f} ({low:+.0f} to {high:+.0f})")
        rows.append((name, variant.meaning, *cells))
    columns = [
        "without",
        "which means",
        *(f"{column}, page cache {cache}" for cache in caches for column in ("INIT ms", "more ms")),
    ]
    details = {"starts": options.starts, "rows": len(texts.texts), "init": seen}
    report("ablation", columns, rows, details, make_provenance(texts.description(), image_python()))
    return 0


def interval(differences: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[float, float, float]:
    """Bootstrap the median difference: return the low end, the median, and the high end of its 95 % interval."""
    rng = np.random.default_rng(SEED)
    medians = np.median(rng.choice(differences, (RESAMPLES, len(differences))), axis=1)
    return float(np.percentile(medians, 2.5)), float(np.median(differences)), float(np.percentile(medians, 97.5))


def measure(folder: Path, variants: dict[str, Variant], starts: int, drop: bool) -> dict[str, list[float]]:
    """Return the milliseconds of INIT of each variant, one a round; the first round is not counted.

    All starts happen in one container, which `folder`, with the variants in it, is mounted into.
    """
    event = sample_event("/similar", {"text": "self driving cars navigation", "num_results": 5})
    seen: dict[str, list[float]] = {name: [] for name in variants}
    order, shuffled = list(variants), random.Random(SEED)
    mounts = ("--volume", f"{folder}:/variants:ro", "--volume", f"{PROJECT / 'bench'}:/code/bench:ro")
    python = ("--workdir", "/code", "--env", "PYTHONDONTWRITEBYTECODE=1", "--entrypoint", "python3")
    command = ["docker", "run", "--rm", "--interactive", "--tmpfs", "/tmp", *mounts, *python, IMAGE]
    with subprocess.Popen(
        [*command, "-m", "bench.starts_in_image"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as container:
        assert container.stdin is not None
        assert container.stdout is not None
        for number in range(starts + 1):
            shuffled.shuffle(order)
            for name in order:
                variant = variants[name]
                if drop:
                    drop_page_cache()
                asked = {"folder": f"/variants/{variant.folder.name}", "handler": variant.handler}
                container.stdin.write(json.dumps({**asked, "unset": variant.unset, "event": event}) + "\n")
                container.stdin.flush()
                answer = container.stdout.readline()
                if not answer:
                    raise SystemExit(f"{name}: the function does not start; its error is above")
                if number:
                    seen[name].append(float(answer))
            console.print(f"page cache {DROPPED if drop else WARM}: round {number} of {starts}")
        container.stdin.close()
    return seen


def make_variants(folder: Path, only: Sequence[str] | None, against: str | None) -> dict[str, Variant]:
    """Return the variants by name, each in a folder of its own in `folder`.

    only names the variants to make beside the whole, None for all; against is a commit to compare with.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    whole = fill(folder / "whole", ())
    shutil.copytree(whole, folder / "copy")
    variants = {WHOLE: Variant("", whole), COPY: Variant("the same: what this machine cannot tell", folder / "copy")}
    for name, meaning in KINDS.items():
        if is_wanted(name, only):
            variants[name] = Variant(f"without: {meaning}", fill(folder / name, ("--without", name)))
    for name, (text, other, meaning) in IN_THE_HANDLER.items():
        if is_wanted(name, only):
            variants[name] = Variant(meaning, fill(folder / name, (), (text, other)))
    for name, (variable, meaning) in IN_THE_ENVIRONMENT.items():
        if is_wanted(name, only):
            variants[name] = Variant(meaning, whole, unset=variable)
    if is_wanted(ARCHIVE, only):
        bare = fill(folder / ARCHIVE, ())
        (bare / "function" / "archive.bin").unlink()
        variants[ARCHIVE] = Variant("each module is found and read by itself, and none is replaced", bare)
    if is_wanted(ZIP, only):
        zipped = fill(folder / ZIP, (), USE_ZIP)
        shutil.copy2(PROJECT / "bench" / "zipped_packages.py", zipped)
        in_the_image(zipped, f"python3 zipped_packages.py packages.zip {TASK} && rm function/archive.bin")
        variants[ZIP] = Variant("like archive, but the pure packages are in a zip that Python imports from", zipped)
    if against is not None:
        variants[against] = Variant(f"the function of {against}", fill_old(folder / "against", against))
    if is_wanted(EMPTY, only):
        (folder / "empty").mkdir()
        shutil.copy2(PEERS / "empty_handler.py", folder / "empty")
        variants[EMPTY] = Variant("nothing is imported", folder / "empty", EMPTY_HANDLER)
    return variants


def is_wanted(name: str, only: Sequence[str] | None) -> bool:
    """Return whether a variant is to be measured."""
    return only is None or name in only


def fill(folder: Path, arguments: tuple[str, ...], change: tuple[str, str] | None = None) -> Path:
    """Fill a folder with `function`, compiled, with a changed handler or archive; return the path of `function`."""
    ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
    shutil.copytree(PROJECT / "function", folder / "function", ignore=ignored)
    shutil.copytree(PROJECT / "deploy", folder / "deploy", ignore=ignored)
    if change is not None:
        handler = folder / "function" / "handler.py"
        text = handler.read_text(encoding="utf-8")
        if change[0] not in text:
            raise SystemExit(f"{handler}: has no {change[0]!r} to leave out; correct bench/ablation.py")
        docstring, quotes, rest = text.partition('"""\n\n')
        handler.write_text(
            docstring + quotes + "from contextlib import nullcontext\n" + rest.replace(*change), encoding="utf-8"
        )
    build = ["python3", "-m", "deploy.build_archive", "--out", "function/archive.bin", *arguments]
    in_the_image(folder, " ".join(build) + " && python3 deploy/bytecode.py .")
    return folder


def fill_old(folder: Path, commit: str) -> Path:
    """Fill a folder with the `function` of an older commit, compiled, with its archive; return its path."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "function"], cwd=PROJECT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    shutil.copytree(PROJECT / "deploy", folder / "deploy")
    made_by = "function.quick_start" if (folder / "function" / "quick_start").exists() else "deploy.build_archive"
    in_the_image(folder, f"python3 -m {made_by} && python3 deploy/bytecode.py .")
    return folder


def in_the_image(folder: Path, command: str) -> None:
    """Run a command with the image's Python and libraries in a folder, as root; what it writes stays there."""
    volume, path = f"{folder}:/made", f"PYTHONPATH=/made:{TASK}"
    docker(
        *("run", "--rm", "--user", "0", "--volume", volume, "--workdir", "/made", "--env", path),
        *("--entrypoint", "sh", IMAGE, "-c", command),
    )
