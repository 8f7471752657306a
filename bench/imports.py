"""Where the milliseconds of INIT's imports go: by package, as `python -X importtime` tells them."""

import os
import re
import statistics
import subprocess

from bench.emulator import Candidate
from bench.report import report

RUNS = 9
MOST = 12  # packages that are shown
LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")


def report_imports(candidate: Candidate) -> None:
    """Report the packages that take longest to import: each module's own time, the median of several starts."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONPATH": "."} | candidate.environment
    script = f"import awslambdaric.bootstrap, {candidate.handler.rpartition('.')[0]}"  # the runtime's own come first
    command = [str(candidate.python), "-X", "importtime", "-c", script]
    modules: dict[str, list[int]] = {}
    for _ in range(RUNS):
        done = subprocess.run(
            command, cwd=candidate.folder, env=environment, check=True, capture_output=True, text=True
        )
        _, _, ours = done.stderr.partition("| awslambdaric.bootstrap\n")
        for microseconds, name in LINE.findall(ours):
            modules.setdefault(name, []).append(int(microseconds))
    packages: dict[str, list[float]] = {}
    for name, found in modules.items():
        packages.setdefault(name.partition(".")[0], []).append(statistics.median(found) / 1e3)
    by_time = sorted(packages.items(), key=lambda entry: -sum(entry[1]))
    rows = [(name, len(times), f"{sum(times):.1f}") for name, times in by_time[:MOST]]
    rest = [time for _, times in by_time[MOST:] for time in times]
    rows.append(("the others", len(rest), f"{sum(rest):.1f}"))
    total = sum(sum(times) for times in packages.values())
    rows.append(("together", len(modules), f"{total:.1f}"))
    details = {name: {"modules": len(times), "milliseconds": sum(times)} for name, times in by_time}
    report("cold_start_imports", ("package", "modules", "ms"), rows, {"runs": RUNS, "packages": details})
