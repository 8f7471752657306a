"""Cold starts of the function over a bundle on the disk and over the same bundle in S3, in turn.

The model is on the disk for both, as it is in the image: only the corpus is fetched.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.environments import function_package, function_python
from bench.published import WHERE

START = """
import json
from time import perf_counter
began = perf_counter()
import function.handler
whole = (perf_counter() - began) * 1e3
print(json.dumps({"whole": whole, "fetch": 0.0} | dict(function.handler.cold_start.phases)))
"""
PHASES = ("import-engine", "import-http", "fetch", "model", "app", "warm-up", "whole")


def measure_starts(
    work: Path, environment: dict[str, str], bundle: Path, rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Return the milliseconds of each phase of each start, from the "image" and from "S3"; the bundle is published.

    The function is as an image has it, with the packages of requirements.txt alone.
    """
    python, package = function_python(work), function_package(work)
    places = {"image": os.environ | {"BUNDLE_DIR": str(bundle.absolute())}}
    places["S3"] = environment | {"BUNDLE_DIR": WHERE, "LOCAL_BUNDLE_DIR": str(bundle.absolute())}
    seen: dict[str, list[dict[str, float]]] = {place: [] for place in places}
    for number in range(rounds + 1):
        for place, variables in places.items():
            done = subprocess.run(
                [python, "-c", START], cwd=package, env=variables, capture_output=True, text=True, check=True
            )
            if number:  # the first start also compiles modules, so it does not count
                seen[place].append(json.loads(done.stdout.splitlines()[-1]))
    return seen


def starts_table(seen: dict[str, list[dict[str, float]]]) -> tuple[Sequence[str], list[Sequence[Any]]]:
    """Return the columns and the rows of the table: medians of milliseconds."""
    rows: list[Sequence[Any]] = []
    for phase in PHASES:
        medians = [statistics.median(start[phase] for start in starts) for starts in seen.values()]
        rows.append((phase, *(f"{median:,.0f}" for median in medians), f"{medians[1] - medians[0]:+,.0f}"))
    return ("milliseconds", *seen, "more"), rows
