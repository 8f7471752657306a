"""Dollars a month at 1, 10 and 100 requests a second, and what is extra: measured times multiplied by prices.

Prices are those of us-east-1 as of November 2026; check them against the pages that they come from. Free tiers, tax and
traffic out of AWS are left out. The milliseconds are those that `python -m bench memory` measured.
"""

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.needs import Missing
from bench.places import places_table
from bench.provenance import UNKNOWN, Provenance
from bench.report import read_result, report

WRITES: tuple[str, ...] = ("cost", "cost_extras", "cost_places")
MEASURES: tuple[str, ...] = ("function", "deploy", "Dockerfile", "requirements.txt")  # those of bench/memory.py

HOURS = 730  # of a month, as AWS's own pages count
SECONDS = HOURS * 3600
RATES = (1, 10, 100)  # requests a second

LAMBDA_PAGE = "https://aws.amazon.com/lambda/pricing/"
HTTP_API_PAGE = "https://aws.amazon.com/api-gateway/pricing/"
CLOUDWATCH_PAGE = "https://aws.amazon.com/cloudwatch/pricing/"
XRAY_PAGE = "https://aws.amazon.com/xray/pricing/"
ECR_PAGE = "https://aws.amazon.com/ecr/pricing/"

LAMBDA_REQUEST = 0.20 / 1e6  # LAMBDA_PAGE
HTTP_API_REQUEST = 1.00 / 1e6  # HTTP_API_PAGE; for each 512 KB of it; the first 300 million of a month, 0.90 beyond
LOG_GIGABYTE = 0.50  # CLOUDWATCH_PAGE; the first 10 TB of a month
ALARM_METRIC = 0.10  # CLOUDWATCH_PAGE; a month, each metric that an alarm reads; ten are free in an account
DASHBOARD = 3.00  # CLOUDWATCH_PAGE; a month; three are free in an account
CUSTOM_METRIC = 0.30  # CLOUDWATCH_PAGE; a month; ten are free in an account
TRACE = 5.00 / 1e6  # XRAY_PAGE; each trace that is recorded
IMAGE_GIGABYTE = 0.10  # ECR_PAGE; a month

# Lambda traces the first request of each second and a twentieth of the others:
# https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html
TRACED_OF_THE_OTHERS = 0.05

# What template.yaml makes; tests/test_cost.py counts them there
ALARM_METRICS = 7
CUSTOM_METRICS = 7  # one for each phase of a start, their sum, and the requests that the API refused with 429

# What one request leaves in the logs, in bytes. The function's own line is measured by tests/test_cost.py, Lambda's
# two (platform.start, platform.report) and the API's are the lines of their documented formats, rounded up.
FUNCTION_LINE = 450
LAMBDA_LINES = 400
ACCESS_LINE = 500


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a gigabyte costs a second, in dollars (LAMBDA_PAGE)."""

    gigabyte_second: float
    provisioned_gigabyte_second: float  # kept started, with and without requests
    gigabyte_second_of_provisioned: float  # on top of it, while it answers


ARCHITECTURES = {
    "x86_64": Architecture(0.0000166667, 0.0000041667, 0.0000097222),
    "arm64": Architecture(0.0000133334, 0.0000033334, 0.0000077778),
}
SNAPSHOT_GIGABYTE_SECOND = 0.0000015046  # SnapStart, for as long as the version exists (LAMBDA_PAGE)
RESTORED_GIGABYTE = 0.0001397998  # SnapStart, each cold start (LAMBDA_PAGE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--memory", type=int, default=1769, help="the function's MB, one that was measured")
    parser.add_argument("--milliseconds", type=float, help="a warm request's mean in Lambda; default: the measured one")


def run(options: argparse.Namespace) -> int:
    """Write the tables, from the measured milliseconds and with their provenance."""
    measured = read_result("memory")
    if measured is None or str(options.memory) not in measured["seen"]:
        raise Missing(
            f"bench/results/memory.json: no measurement at {options.memory} MB, expected one to take the milliseconds "
            "from; run `python -m bench memory`, or name a measured size with --memory"
        )
    seen = measured["seen"][str(options.memory)]
    milliseconds = options.milliseconds or statistics.mean(seen["warm"])
    init = statistics.median(seen["init"])
    source = Provenance(
        commit=measured.get("commit", UNKNOWN),
        python=measured["python"],
        machine=measured["machine"],
        texts=measured.get("texts", ""),
        measured=measured["measured"],
    )
    details = {"milliseconds": milliseconds, "init_milliseconds": init, "memory": options.memory}
    report("cost", *table(milliseconds, options.memory), details, source)
    report("cost_extras", *extras(milliseconds, init, options.memory), details, source)
    report("cost_places", *places_table(), details, source)
    return 0


def compute(milliseconds: float, memory: int, gigabyte_second: float) -> float:
    """Return the dollars that Lambda takes for one request of this duration: whole milliseconds, rounded up."""
    return math.ceil(milliseconds) / 1000 * memory / 1024 * gigabyte_second


def always_on(memory: int, gigabyte_second: float) -> float:
    """Return the dollars a month for memory that is paid for with and without requests."""
    return SECONDS * memory / 1024 * gigabyte_second


def tracing(rate: float) -> float:
    """Return the dollars a month for traces at this many requests a second."""
    return SECONDS * TRACE * (min(rate, 1) + TRACED_OF_THE_OTHERS * max(rate - 1, 0))


def month(rate: float, milliseconds: float, memory: int, architecture: Architecture) -> dict[str, float]:
    """Return the dollars a month at this many requests a second, by what they are for."""
    requests = rate * SECONDS
    line_bytes = FUNCTION_LINE + LAMBDA_LINES + ACCESS_LINE
    return {
        "computing": requests * compute(milliseconds, memory, architecture.gigabyte_second),
        "Lambda's requests": requests * LAMBDA_REQUEST,
        "HTTP API": requests * HTTP_API_REQUEST,
        "logs": requests * line_bytes / 1e9 * LOG_GIGABYTE,
    }


def table(milliseconds: float, memory: int) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the columns and the rows of the table of a month's requests."""
    rows: list[Sequence[str]] = []
    columns: Sequence[str] = ()
    for name, architecture in ARCHITECTURES.items():
        for rate in RATES:
            dollars = month(rate, milliseconds, memory, architecture)
            total = sum(dollars.values())
            columns = ("", "ms", "requests/s", "million a month", *dollars, "sum", "a million requests")
            amounts = (*dollars.values(), total, total / (rate * SECONDS) * 1e6)
            numbers = (f"{milliseconds:.1f}", str(rate), f"{rate * SECONDS / 1e6:,.1f}")
            rows.append((name, *numbers, *(f"${amount:,.2f}" for amount in amounts)))
    return columns, rows


def extras(milliseconds: float, init: float, memory: int) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the columns and the rows of what the other table leaves out, at x86_64's prices."""
    x86 = ARCHITECTURES["x86_64"]
    cold, warm = (compute(duration, memory, x86.gigabyte_second) for duration in (init, milliseconds))
    rows: list[Sequence[str]] = [
        (f"a cold start of {init:.0f} ms", f"${cold:.6f}", f"each; as much as {cold / warm:.0f} warm requests"),
        (
            f"ReservedConcurrency=1 of {memory:,} MB, computing all the time",
            f"${always_on(memory, x86.gigabyte_second):,.2f}",
            "a month at most; so much for each",
        ),
        (
            f"one provisioned environment of {memory:,} MB",
            f"${always_on(memory, x86.provisioned_gigabyte_second):,.2f}",
            "a month, with and without requests",
        ),
        (
            f"{ALARM_METRICS} alarm metrics and a dashboard",
            f"${ALARM_METRICS * ALARM_METRIC + DASHBOARD:,.2f}",
            "a month, where the account's free ones (ten and three) are used up",
        ),
        (
            f"{CUSTOM_METRICS} metrics of cold starts and refusals",
            f"${CUSTOM_METRICS * CUSTOM_METRIC:,.2f}",
            "a month at most, where the account's ten free ones are used up",
        ),
    ]
    rows += [(f"Tracing=Active at {rate} requests/s", f"${tracing(rate):,.2f}", "a month") for rate in RATES]
    rows += [
        ("images in ECR", f"${IMAGE_GIGABYTE:.2f}", "a month for each GB"),
        (
            f"SnapStart's snapshot of {memory:,} MB",
            f"${always_on(memory, SNAPSHOT_GIGABYTE_SECOND):,.2f}",
            "a month, for as long as its version exists",
        ),
        ("SnapStart's restore", f"${memory / 1024 * RESTORED_GIGABYTE:.5f}", "each cold start"),
    ]
    return ("extra", "dollars", "when"), rows
