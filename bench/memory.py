"""Which memory size: the image under the share of a core that Lambda gives each size, cold and warm, and what it costs.

Lambda gives memory / 1,769 MB of a core, and INIT at least a whole one. Here a control group does: its quota is counted
over 20 ms, so a request that needs more than its share of that waits for the next 20 ms.
"""

import argparse
import json
import re
import shutil
import socket
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.cost import ARCHITECTURES, LAMBDA_REQUEST, compute
from bench.data import add_data_argument
from bench.emulator import init_milliseconds, request_milliseconds
from bench.environments import PROJECT
from bench.events import http_event
from bench.report import console, report
from bench.warm import WARM_UP, headlines_bundle, short_queries

SIZES = (512, 1_024, 1_769, 3_008)  # megabytes
FULL_CORE = 1_769  # megabytes; https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PERIOD = 20_000  # microseconds
IMAGE = "semantic-search:bench"
EMULATOR = ("--entrypoint", "/usr/local/bin/aws-lambda-rie")  # as the image's own, but it says how long INIT took
COMMAND = ("--log-level", "info", "/var/runtime/bootstrap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="headlines in the index")
    parser.add_argument("--starts", type=int, default=5, help="cold starts of each size")
    parser.add_argument("--requests", type=int, default=300, help="warm requests of each size")
    parser.add_argument("--words", type=int, default=4, help="words in a query")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    if shutil.which("docker") is None:
        raise SystemExit("there is no docker on this machine; the image runs in it")
    queries = short_queries(options.data, options.words, 1_000)
    over_base = build_image(options.work, headlines_bundle(options.work, options.data, options.rows))
    console.print(f"the image holds {over_base:.1f} MB over its base")
    rows, details = [], {}
    for size in SIZES:
        seen = measure(options, size, queries)
        details[str(size)] = seen
        warm = statistics.mean(seen["warm"])
        cost = compute(warm, size, ARCHITECTURES["x86_64"].gigabyte_second) + LAMBDA_REQUEST
        rows.append(
            (
                f"{size:,}",
                f"{size / FULL_CORE:.2f}",
                f"{statistics.median(seen['init']):.0f}",
                f"{statistics.median(seen['first']):.1f}",
                f"{statistics.median(seen['warm']):.1f}",
                f"{warm:.1f}",
                f"{np.percentile(seen['warm'], 99):.1f}",
                f"{max(seen['peak']):.0f}",
                f"{cost * 1e6:.2f}",
            )
        )
        console.print(f"{size} MB measured")
    columns = ("memory MB", "cores", "INIT ms", "first request ms", "warm p50 ms", "warm mean ms", "warm p99 ms")
    found = {"rows": options.rows, "megabytes_over_base": over_base, "seen": details}
    report("memory", (*columns, "peak MB", "$ per million requests"), rows, found)
    return 0


def build_image(work: Path, bundle: Path) -> float:
    """Build the image with this bundle; give the megabytes that it holds over its base, unpacked."""
    context = work / "image-context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(bundle, context / "bundle")
    for name in ("function", "image"):
        shutil.copytree(PROJECT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Dockerfile", ".dockerignore", "requirements.txt"):
        shutil.copy2(PROJECT / name, context / name)
    console.print("building the image ...")
    docker("build", "--tag", IMAGE, str(context))
    base = re.findall(r"^ARG BASE_IMAGE=(.+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)[0]
    ours, below = (int(docker("image", "inspect", "--format", "{{.Size}}", name)) for name in (IMAGE, base))
    return (ours - below) / 1e6


def measure(options: argparse.Namespace, size: int, queries: list[str]) -> dict[str, list[float]]:
    """Start the image `starts` times with this many megabytes, and ask the last one on: milliseconds and megabytes."""
    seen: dict[str, list[float]] = {"init": [], "first": [], "warm": [], "peak": []}
    for number in range(options.starts):
        with container(size) as (name, port):
            invoke(port, http_event("/similar", {"text": queries[0]}))
            printed = docker("logs", name)
            seen["init"].append(init_milliseconds(printed))
            # the emulator starts INIT with the first request, and counts it in
            seen["first"].append(request_milliseconds(printed)[0] - seen["init"][-1])
            if number == options.starts - 1:
                limit(name, size / FULL_CORE)
                for count in range(options.requests + WARM_UP):
                    invoke(port, http_event("/similar", {"text": queries[count % len(queries)]}))
                seen["warm"] = request_milliseconds(docker("logs", name))[1 + WARM_UP :]
            peaks = re.findall(r"VmHWM:\s+(\d+)", docker("exec", name, "sh", "-c", "cat /proc/[0-9]*/status"))
            seen["peak"].append(max(map(int, peaks)) / 1024)
    return seen


@contextmanager
def container(size: int) -> Iterator[tuple[str, int]]:
    """Run the image with this many megabytes and at least a whole core; give its name and its port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    options = ("--read-only", "--tmpfs", "/tmp", "--memory", f"{size}m", "--publish", f"127.0.0.1:{port}:8080")
    handler = ("--env", "_HANDLER=function.handler.handler")
    name = docker("run", "--detach", *options, *handler, *EMULATOR, IMAGE, *COMMAND).strip()
    try:
        limit(name, max(1.0, size / FULL_CORE))
        yield name, port
    finally:
        docker("rm", "--force", name)


def limit(name: str, cores: float) -> None:
    """Give a running container this many cores."""
    docker("update", "--cpu-period", str(PERIOD), "--cpu-quota", str(round(cores * PERIOD)), name)


def invoke(port: int, event: dict[str, Any]) -> None:
    """Send one event. Raises SystemExit if it is not answered with 200."""
    url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    request = urllib.request.Request(url, json.dumps(event).encode())
    for attempt in range(100):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                reply = json.load(answer)
            break
        except (urllib.error.URLError, ConnectionError) as error:  # the emulator does not listen yet
            if attempt == 99:
                raise SystemExit(f"the container does not answer: {error}") from error
            time.sleep(0.05)
    if reply.get("statusCode") != 200:
        raise SystemExit(f"the function answered {reply}")


def docker(*arguments: str) -> str:
    """Run docker and give what it printed on both streams. Raises SystemExit with it if it failed."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise SystemExit(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr
