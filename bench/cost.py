"""Dollars a month at 1, 10 and 100 requests a second: nothing is measured here, prices are multiplied.

Prices are those of us-east-1 as of November 2026, to be checked against the pages they come from. Free tiers, tax and
traffic out of AWS are left out, and so are cold starts: one of 600 ms costs as much as some 85 warm requests of 7.
"""

import argparse
import math
from dataclasses import dataclass

from bench.report import report

HOURS = 730  # of a month, as AWS's own pages count
SECONDS = HOURS * 3600
RATES = (1, 10, 100)  # requests a second

LAMBDA_PAGE = "https://aws.amazon.com/lambda/pricing/"
HTTP_API_PAGE = "https://aws.amazon.com/api-gateway/pricing/"
CLOUDWATCH_PAGE = "https://aws.amazon.com/cloudwatch/pricing/"

LAMBDA_REQUEST = 0.20 / 1e6  # LAMBDA_PAGE
HTTP_API_REQUEST = 1.00 / 1e6  # HTTP_API_PAGE; the first 300 million of a month, 0.90 beyond
LOG_GIGABYTE = 0.50  # CLOUDWATCH_PAGE; the first 10 TB of a month

# What one request leaves in the logs, in bytes. The function's own line is measured by tests/test_cost.py, Lambda's
# two (platform.start, platform.report) and the API's are the lines of their documented formats, rounded up.
FUNCTION_LINE = 450
LAMBDA_LINES = 400
ACCESS_LINE = 250


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a gigabyte costs a second (LAMBDA_PAGE)."""

    gigabyte_second: float
    provisioned_gigabyte_second: float  # kept started, asked or not
    gigabyte_second_of_provisioned: float  # and while it works


ARCHITECTURES = {
    "x86_64": Architecture(0.0000166667, 0.0000041667, 0.0000097222),
    "arm64": Architecture(0.0000133334, 0.0000033334, 0.0000077778),
}
SNAPSHOT_GIGABYTE_SECOND = 0.0000015046  # SnapStart, for as long as the version exists (LAMBDA_PAGE)
RESTORED_GIGABYTE = 0.0001397998  # SnapStart, each cold start (LAMBDA_PAGE)


def compute(milliseconds: float, memory: int, gigabyte_second: float) -> float:
    """Give the dollars that Lambda takes for one request of this duration: whole milliseconds, rounded up."""
    return math.ceil(milliseconds) / 1000 * memory / 1024 * gigabyte_second


def always_on(memory: int, gigabyte_second: float) -> float:
    """Give the dollars a month for memory that is paid for whether or not somebody asks."""
    return SECONDS * memory / 1024 * gigabyte_second


def month(rate: float, milliseconds: float, memory: int, architecture: Architecture) -> dict[str, float]:
    """Give the dollars a month at this many requests a second, by what they are for."""
    requests = rate * SECONDS
    line_bytes = FUNCTION_LINE + LAMBDA_LINES + ACCESS_LINE
    return {
        "computing": requests * compute(milliseconds, memory, architecture.gigabyte_second),
        "Lambda's requests": requests * LAMBDA_REQUEST,
        "HTTP API": requests * HTTP_API_REQUEST,
        "logs": requests * line_bytes / 1e9 * LOG_GIGABYTE,
    }


def table(milliseconds: float, memory: int) -> tuple[list[str], list[list[str]]]:
    """Give the columns and the rows of the table."""
    rows = []
    columns: list[str] = []
    for name, architecture in ARCHITECTURES.items():
        for rate in RATES:
            dollars = month(rate, milliseconds, memory, architecture)
            total = sum(dollars.values())
            columns = ["", "requests/s", "million a month", *dollars, "sum", "a million requests"]
            rows.append(
                [
                    *(name, str(rate), f"{rate * SECONDS / 1e6:,.1f}"),
                    *(f"${amount:,.2f}" for amount in (*dollars.values(), total, total / (rate * SECONDS) * 1e6)),
                ]
            )
    return columns, rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--milliseconds", type=float, default=6.2, help="a warm request's duration in Lambda")
    parser.add_argument("--memory", type=int, default=1769, help="the function's MB")


def run(options: argparse.Namespace) -> int:
    """Write the table."""
    columns, rows = table(options.milliseconds, options.memory)
    report("cost", columns, rows, {"milliseconds": options.milliseconds, "memory": options.memory})
    return 0
