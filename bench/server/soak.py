"""Ten minutes of requests at 100 connections: errors and memory of the server, minute by minute."""

import argparse
from dataclasses import asdict

from bench.bundles import make_bundle
from bench.report import console, make_provenance, report
from bench.server import serve
from bench.server.load import load, require_wrk, write_bodies
from bench.server.servers import proportional_megabytes, running, this_server
from bench.texts import add_data_argument, read_texts

WRITES: tuple[str, ...] = ("soak",)
MEASURES = serve.MEASURES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60, help="length of each minute; less to try the command")
    parser.add_argument("--connections", type=int, default=100)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    require_wrk()
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    server = this_server(make_bundle(work, texts), "--workers", str(serve.WORKERS))
    bodies = write_bodies(
        work / "soak.jsonl", [{"text": " ".join(text.split()[:4])} for text in texts.texts[: serve.BODIES]]
    )
    minutes, rows = [], []
    with running(server, work / "soak.log") as process:
        for number in range(1, options.minutes + 1):
            found = load(server.address("/similar"), bodies, options.connections, options.seconds)
            megabytes = proportional_megabytes(process)
            minutes.append(asdict(found) | {"megabytes": megabytes})
            cells = [f"{found.requests_per_second:,.0f}", f"{found.p50:.0f}", f"{found.p99:.0f}"]
            rows.append((f"{number}", *cells, f"{sum(found.errors.values())}", f"{megabytes:.0f}"))
            console.print(f"minute {number} of {options.minutes}")
    columns = ["minute", "requests/s", "p50 ms", "p99 ms", "errors", "MB"]
    details = {"connections": options.connections, "minutes": minutes}
    report("soak", columns, rows, details, make_provenance(texts.description()))
    return 0
