"""Which memory size: the image with the share of a core that Lambda gives each size, cold and warm, and its price.

A function with M megabytes of memory has M / 1,769 of a core; INIT has at least a whole one. Here a control group
limits the core. Its quota is counted over 20 ms, so a request that has used its share waits for the next 20 ms.
"""

import argparse
import math
import statistics

import numpy as np

from bench.emulator import build_image, docker, image_python, sample_event, started
from bench.report import console, make_provenance, report, require_docker
from bench.texts import add_data_argument, read_texts, short_queries
from bench.work import make_bundle

# dollars for x86_64 in us-east-1, of a second with a gigabyte and of a request: https://aws.amazon.com/lambda/pricing/
GIGABYTE_SECOND, REQUEST = 0.0000166667, 0.20 / 1e6
SIZES = (512, 1_024, 1_769, 3_008)  # megabytes of memory
FULL_CORE = 1_769  # megabytes that come with a whole core; https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PERIOD = 20_000  # microseconds over which the quota of a control group is counted
WARM_UP = 50  # first requests, which are not counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=5, help="cold starts of each size")
    parser.add_argument("--requests", type=int, default=300, help="warm requests of each size")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    require_docker()
    texts = read_texts(options.data, options.rows)
    queries = short_queries(options.data, 1_000)
    build_image(options.work, make_bundle(options.work, texts))
    rows, details = [], {}
    for size in SIZES:
        seen = details[str(size)] = measure(options, size, queries)
        mean = statistics.mean(seen["warm"])
        cells = [f"{size:,}", f"{size / FULL_CORE:.2f}", f"{statistics.median(seen['init']):.0f}"]
        cells += [f"{statistics.median(seen['first']):.1f}", f"{statistics.median(seen['warm']):.1f}"]
        cells += [f"{mean:.1f}", f"{np.percentile(seen['warm'], 99):.1f}"]
        cells += [f"{max(seen['peak']):.0f}"]
        billed = math.ceil(mean) / 1000 * size / 1024 * GIGABYTE_SECOND  # started milliseconds count
        rows.append((*cells, f"{(billed + REQUEST) * 1e6:.2f}"))
        console.print(f"{size} MB measured")
    columns = ["memory MB", "cores", "INIT ms", "first request ms", "warm p50 ms", "warm mean ms", "warm p99 ms"]
    columns += ["peak MB", "$ per million requests"]
    source = make_provenance(texts.description(), image_python())
    report("memory", columns, rows, {"rows": len(texts.texts), "seen": details}, source)
    return 0


def measure(options: argparse.Namespace, size: int, queries: list[str]) -> dict[str, list[float]]:
    """Return milliseconds and megabytes of the image with this many megabytes of memory.

    The image is started `starts` times; the last container is sent the warm requests too.
    """
    seen: dict[str, list[float]] = {"init": [], "first": [], "warm": [], "peak": []}
    for number in range(options.starts):
        with started(("--memory", f"{size}m", *limit(max(1.0, size / FULL_CORE)))) as container:
            container.invoke(sample_event("/similar", {"text": queries[0]}))
            seen["init"].append(container.init_milliseconds())
            seen["first"].append(container.request_milliseconds()[0] - seen["init"][-1])
            if number == options.starts - 1:
                docker("update", *limit(size / FULL_CORE), container.name)
                for count in range(options.requests + WARM_UP):
                    container.invoke(sample_event("/similar", {"text": queries[count % len(queries)]}))
                seen["warm"] = container.request_milliseconds()[1 + WARM_UP :]
            seen["peak"].append(container.usage()[0])
    return seen


def limit(cores: float) -> tuple[str, ...]:
    """Return docker's options for this many cores."""
    return "--cpu-period", str(PERIOD), "--cpu-quota", str(round(cores * PERIOD))
