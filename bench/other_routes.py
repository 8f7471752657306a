"""The first request to another route than those of plain searches: without the warm-up of all routes, and with it.

Each start is a new process of the function, without Lambda's emulator, and measures itself. Times are processor time,
because a request has a share of a core that depends on the memory of the function. What a SnapStart restore loads is
measured by the pages that the request after it touches.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import DATA, WORK, emulator
from bench.cold_start import ROWS, make_function, spread
from bench.emulator import LocalFunction
from bench.tables import as_markdown, make_provenance, report
from bench.work import make_bundle, read_texts

ON_DEMAND, ALL_ROUTES = "default", "`WARM_UP_ALL_ROUTES=1`"
TOOLS: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
REQUESTS = {"MCP": emulator.sample_event("/mcp", TOOLS), "422": emulator.sample_event("/similar", {"text": 5})}
# the variables of the Dockerfile that matter here
IMAGE = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
# Prints the milliseconds of INIT and of the event, and megabytes: the pages that the warm-up of a restore touches,
# which is sent before the event, and the peak of INIT and of this warm-up.
MEASURE = """
import json, resource, sys, time
from types import SimpleNamespace
begin = time.process_time()
import function.handler as started
init = time.process_time() - begin
open("/proc/self/clear_refs", "w").write("1")
started.warm_up(started.handler, started.body)
touched = open("/proc/self/smaps_rollup").read().partition("Referenced:")[2].split()[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
reply = started.handler(json.loads(sys.argv[1]), SimpleNamespace(aws_request_id="a"))
request = time.process_time() - begin
assert reply["statusCode"] in (200, 422), reply
measured = {"init": init * 1e3, "request": request * 1e3, "touched": int(touched) / 1024, "peak": peak / 1024}
print(json.dumps(measured))
"""


def other_routes(*, starts: int = 10, without: Sequence[str] = (), work: Path = WORK, data: Path = DATA) -> None:
    """How much processor time the first other request takes, and how much INIT takes if it does that work.

    Args:
        starts: starts of each kind for each request.
        without: kinds of function/image/build_archive.py: start the function whole and without each of these parts;
            print a table, write no result.
    """
    work = work.absolute()
    texts = read_texts(data, ROWS)
    bundle = make_bundle(work, texts)
    functions = {ON_DEMAND: make_function(work, bundle)}
    if without:
        functions |= {f"without {part}": make_function(work, bundle, part) for part in without}
    else:
        environment = functions[ON_DEMAND].environment | {"WARM_UP_ALL_ROUTES": "1"}
        functions[ALL_ROUTES] = replace(functions[ON_DEMAND], environment=environment)
    seen: dict[str, dict[str, list[float]]] = {name: {} for name in functions}
    for number in range(starts + 1):  # the first round warms the page cache and is not counted
        for kind, event in REQUESTS.items():
            for name, function in functions.items():
                measured = start(function, event)
                measured[kind] = measured.pop("request")
                for what, value in measured.items():
                    seen[name].setdefault(what, []).extend([value] * bool(number))
        print(f"{number} of {starts}", flush=True)
    columns = [
        "start",
        "INIT ms",
        "first request of MCP ms",
        "first 422 ms",
        "peak MB of INIT",
        "MB touched after a restore",
    ]
    rows = [_row(name, measured) for name, measured in seen.items()]
    if without:
        print(as_markdown(columns, rows))
        return
    report("other_routes", columns, rows, {"starts": starts, "seen": seen}, make_provenance(texts.description()))


def start(function: LocalFunction, event: Mapping[str, Any]) -> dict[str, float]:
    """Return what a start and its first event take: processor milliseconds and megabytes."""
    done = subprocess.run(
        [function.python, "-c", MEASURE, json.dumps(event)],
        cwd=function.folder,
        env=IMAGE | function.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the function did not start\n{done.stderr[-2000:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _row(name: str, measured: Mapping[str, list[float]]) -> list[str]:
    times = [spread(measured[what]) for what in ("init", "MCP", "422")]
    return [name, *times, *(f"{statistics.median(measured[what]):.0f}" for what in ("peak", "touched"))]
