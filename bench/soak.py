"""Ten minutes of requests at 100 connections: errors and memory of the server, minute by minute."""

import argparse
from dataclasses import asdict

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.load import load, require_wrk, write_bodies
from bench.provenance import make_provenance
from bench.report import console, report
from bench.serve import BODIES, WORKERS
from bench.servers import proportional_megabytes, running, this_server
from bench.texts import read_texts

WRITES: tuple[str, ...] = ("soak",)
MEASURES: tuple[str, ...] = ("function",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60, help="of each minute, to try the command")
    parser.add_argument("--connections", type=int, default=100)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    require_wrk()
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(work, texts)
    queries = [{"text": " ".join(text.split()[:4])} for text in texts.texts[:BODIES]]
    bodies = write_bodies(work / "soak.jsonl", queries)
    minutes = []
    server = this_server(bundle, "--workers", str(WORKERS))
    with running(server, work / "soak.log") as process:
        for number in range(1, options.minutes + 1):
            found = load(server.address("/similar"), bodies, options.connections, options.seconds)
            minutes.append(asdict(found) | {"megabytes": proportional_megabytes(process)})
            console.print(f"minute {number} of {options.minutes}")
    columns = ["minute", "requests/s", "p50 ms", "p99 ms", "errors", "MB"]
    rows = [
        (
            f"{number}",
            f"{minute['requests_per_second']:,.0f}",
            f"{minute['p50']:.0f}",
            f"{minute['p99']:.0f}",
            f"{sum(minute['errors'].values())}",
            f"{minute['megabytes']:.0f}",
        )
        for number, minute in enumerate(minutes, 1)
    ]
    report(
        "soak",
        columns,
        rows,
        {"connections": options.connections, "minutes": minutes},
        make_provenance(texts.description()),
    )
    return 0
