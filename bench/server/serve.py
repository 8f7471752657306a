"""How many requests a second the server answers, beside FastAPI with sentence-transformers and infinity-emb.

wrk posts thousands of different texts at 1 to 1,000 connections. The servers have the same model and the same cores. At
each number of connections they take turns, each when the others have nothing left to do. A figure is the median of the
rounds. Memory is measured after that, of one server at a time.
"""

import argparse
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from bench.bundles import make_bundle
from bench.environments import infinity_python, peer_server_python
from bench.function.candidates import TRANSFORMERS, peer_environment
from bench.report import Panel, console, draw_lines, make_provenance, numbers, report, show
from bench.server.load import Load, load, require_wrk, write_bodies
from bench.server.servers import (
    PORT,
    ServerCommand,
    infinity_server,
    peer_server,
    proportional_megabytes,
    running,
    this_server,
    wait_until_idle,
)
from bench.texts import Texts, add_data_argument, read_texts
from function.engine.bundle import read_manifest
from function.engine.embedder import Embedder

WRITES: tuple[str, ...] = ("serve",)
MEASURES: tuple[str, ...] = (
    "function.server.cli",
    "function.server.asgi",
    "function.server.workers",
    "requirements.txt",
)
OURS, UNBATCHED, PEER, INFINITY = "this server", "this server (one text a batch)", "FastAPI + gunicorn", "infinity-emb"
SERVERS = (OURS, UNBATCHED, PEER, INFINITY)
KINDS = ("short", "128 tokens", "mixed")
BODIES = 5_000  # texts of each kind
CASES = (*(("/predict", kind) for kind in KINDS), ("/similar", "short"))
LONG = 128  # tokens
WORKERS = 2  # processes of each server that has workers
SEED = 11


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--seconds", type=int, default=8, help="length of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=numbers, default=[1, 10, 40, 100, 1000], help="such as 1,40")
    parser.add_argument("--only", metavar="SERVER,…", help="measure these servers, print the table and write no result")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    require_wrk()
    work = options.work.absolute()
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(work, texts)
    names = options.only.split(",") if options.only else SERVERS
    servers = {name: make_server(name, work, bundle, texts, PORT + place) for place, name in enumerate(names)}
    bodies = make_texts(texts.texts, Embedder.open(bundle, read_manifest(bundle).model))
    seen = measure(servers, work, bodies, options)
    megabytes = {name: memory(server, work, bodies["short"], options.seconds) for name, server in servers.items()}
    columns, rows = table(seen, megabytes)
    if options.only:
        show(columns, rows)
        return 0
    details = {
        name: {case: [asdict(one) for one in loads] for case, loads in cases.items()} for name, cases in seen.items()
    }
    source = make_provenance(texts.description())
    multiples = {name: ratios(seen, name) for name in servers}
    measured = {"seconds": options.seconds, "megabytes": megabytes, "multiples": multiples, "seen": details}
    report("serve", columns, rows, measured, source)
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for name, cases in seen.items():
        for case, loads in cases.items():
            panel, _, connections = case.rpartition(", ")
            lines = panels.setdefault(panel, {})
            lines.setdefault(name, {})[int(connections)] = median(loads).requests_per_second
    draw_lines("serve", "connections", [Panel(title, "requests a second", lines) for title, lines in panels.items()])
    return 0


def make_server(name: str, work: Path, bundle: Path, texts: Texts, port: int) -> ServerCommand:
    """Return how the server of this name is started. Raises SystemExit if there is no server of that name."""
    from export.model.source.source import find_model  # no part of the server that is measured

    model = find_model(None, None)[0]
    workers = ("--workers", str(WORKERS))
    if name == OURS:
        return this_server(bundle, *workers, port=port)
    if name == UNBATCHED:
        return this_server(bundle, *workers, "--tokens-per-batch", "1", port=port)
    if name == PEER:
        return peer_server(peer_server_python(work), peer_environment(work, bundle, texts, TRANSFORMERS), WORKERS, port)
    if name == INFINITY:
        return infinity_server(infinity_python(work), model, port)
    raise SystemExit(f"--only: {name!r}, expected some of {', '.join(SERVERS)}")


def make_texts(texts: Sequence[str], embedder: Embedder) -> dict[str, list[str]]:
    """Return BODIES texts of each kind: four words, about 128 tokens, and all lengths between."""
    lengths = [len(tokens.ids) - 2 for tokens in embedder.tokenize(texts)]
    order, places = random.Random(SEED), count()

    def joined(tokens: int) -> str:
        parts: list[str] = []
        while tokens > 0:
            place = next(places) % len(texts)
            words = texts[place].split()
            kept = words if lengths[place] <= tokens else words[: max(1, len(words) * tokens // lengths[place])]
            parts += kept
            tokens -= lengths[place]
        return " ".join(parts)

    return {
        "short": [" ".join(text.split()[:4]) for text in texts[:BODIES]],
        "128 tokens": [joined(LONG - 2) for _ in range(BODIES)],
        "mixed": [joined(order.choice((4, 8, 16, 32, 64, LONG)) - 2) for _ in range(BODIES)],
    }


def measure(
    servers: Mapping[str, ServerCommand], work: Path, texts: Mapping[str, Sequence[str]], options: argparse.Namespace
) -> dict[str, dict[str, list[Load]]]:
    """Return the loads of each server, one for each round, by "route, kind, connections"."""
    seen: dict[str, dict[str, list[Load]]] = {name: {} for name in servers}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(running(server, work / f"serve-{server.port}.log"))
            for name, server in servers.items()
        }
        for number in range(options.rounds):
            for route, kind in CASES:
                able = [name for name, server in servers.items() if route in server.routes]
                for name in able:
                    ask(servers[name], work, route, texts[kind], 10, 2)  # warms up
                    wait_until_idle(processes[name])
                for connections in options.connections:
                    for name in able:
                        found = ask(servers[name], work, route, texts[kind], connections, options.seconds)
                        seen[name].setdefault(f"{route}, {kind}, {connections}", []).append(found)
                        wait_until_idle(processes[name])
                console.print(f"round {number + 1} of {options.rounds}: {route}, {kind}")
    return seen


def ask(server: ServerCommand, work: Path, route: str, texts: Sequence[str], connections: int, seconds: int) -> Load:
    """Send these texts to a route in turn, and return the load that the server took."""
    field = server.routes[route][1]
    mode = {"mode": "semantic"} if route == "/similar" else {}  # the other servers know no words
    bodies = write_bodies(work / "serve.jsonl", [{field: text, **mode, **server.body} for text in texts])
    return load(server.address(route), bodies, connections, seconds)


def memory(server: ServerCommand, work: Path, texts: Sequence[str], seconds: int) -> float:
    """Return the megabytes of a server after a load on each route; pages that its processes share count once."""
    with running(server, work / f"serve-{server.port}.log") as process:
        for route in server.routes:
            ask(server, work, route, texts, 40, seconds)
        return proportional_megabytes(process)


def median(loads: Sequence[Load]) -> Load:
    """Return the medians of the rounds, and the sum of their errors."""
    errors: Counter[str] = Counter()
    for one in loads:
        errors.update(one.errors)
    return Load(
        statistics.median(one.requests_per_second for one in loads),
        statistics.median(one.p50 for one in loads),
        statistics.median(one.p99 for one in loads),
        dict(errors),
    )


def ratio(loads: Sequence[Load], others: Sequence[Load]) -> float | None:
    """Return the requests a second as a multiple of another server's: the median over the rounds.

    None if the other server answered nothing in one of them.
    """
    if not all(other.requests_per_second for other in others):
        return None
    pairs = zip(loads, others, strict=True)
    return statistics.median(one.requests_per_second / other.requests_per_second for one, other in pairs)


def ratios(seen: Mapping[str, Mapping[str, Sequence[Load]]], other: str) -> dict[str, float | None]:
    """Return how many times the requests of another server this project's server answers, for each load of both."""
    ours, others = seen.get(OURS, {}), seen.get(other, {})
    return {case.removeprefix("/"): ratio(ours[case], others[case]) for case in ours if case in others}


def table(
    seen: dict[str, dict[str, list[Load]]], megabytes: dict[str, float]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and the rows, by load and then by server."""
    columns = ["route", "texts", "connections", "server", "requests/s", "x the peer"]
    columns += ["p50 ms", "p99 ms", "errors", "MB"]
    rows: list[tuple[Any, ...]] = []
    for case in dict.fromkeys(case for cases in seen.values() for case in cases):
        for name, cases in seen.items():
            if case not in cases:
                continue
            found, peer = median(cases[case]), seen.get(PEER, {}).get(case)
            multiple = ratio(cases[case], peer) if peer else None
            errors = ", ".join(f"{kind}: {number:,}" for kind, number in sorted(found.errors.items()))
            cells = [*case.split(", "), name, f"{found.requests_per_second:,.0f}"]
            cells += [f"{multiple:.1f}" if multiple else "", f"{found.p50:,.1f}", f"{found.p99:,.1f}"]
            rows.append((*cells, errors, f"{megabytes[name]:.0f}"))
    return columns, rows
