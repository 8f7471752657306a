"""How many requests a second the server answers, beside FastAPI with sentence-transformers and infinity-emb.

wrk posts thousands of different texts at 1 to 1,000 connections. The servers have the same model and the same cores. At
each number of connections they take turns, each when the others have nothing left to do. A figure is the median of the
rounds. Memory is measured after that, of one server at a time.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bench.cold_start import TRANSFORMERS, peer_environment
from bench.report import PEERS, PROJECT, Missing, console, make_provenance, numbers, report, show
from bench.texts import Texts, add_data_argument, read_texts
from bench.work import ONE_THREAD, make_bundle, peer_python
from semsearch.engine.bundle import read_manifest
from semsearch.engine.embedder import Embedder

OURS, UNBATCHED, PEER, INFINITY = "this server", "this server (one text a batch)", "FastAPI + gunicorn", "infinity-emb"
SERVERS = (OURS, UNBATCHED, PEER, INFINITY)
KINDS = ("short", "128 tokens", "mixed")
BODIES = 5_000  # number of texts of each kind
CASES = (*(("/predict", kind) for kind in KINDS), ("/similar", "short"))
LONG = 128  # tokens of a long text
WORKERS = 2  # number of processes of each server that has workers
SEED = 11
PORT = 8399
ROUTES = {"/predict": ("/predict", "text"), "/similar": ("/similar", "text")}
STARTS_WITHIN = 180  # maximum seconds until a server listens
IDLE_WITHIN = 600  # maximum seconds until a server is idle
IDLE = 0.1  # maximum share of a core that an idle process uses
TIMEOUT = 60  # seconds until wrk counts a request as an error


@dataclass(frozen=True, slots=True)
class Load:
    """The replies at one number of connections; errors are counts by status or by kind."""

    requests_per_second: float  # only requests that were answered with 200
    p50: float  # milliseconds, of all replies
    p99: float
    errors: dict[str, int]


def load(address: str, bodies: Path, connections: int, seconds: int) -> Load:
    """Post the bodies in turn over this many connections, each of which waits for its reply.

    Raises CalledProcessError if wrk cannot reach the server.
    """
    threads = min(2, connections)
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", f"{TIMEOUT}s"]
    script = ["-s", str(PEERS / "load.lua"), address, "--", str(bodies)]
    done = subprocess.run([*command, *script], check=True, capture_output=True, text=True)
    return parse(done.stdout)


def parse(printed: str) -> Load:
    """Return what load.lua printed, as its last line."""
    seen = json.loads(printed.splitlines()[-1])
    errors: Counter[str] = Counter()
    for entry in seen["statuses"].split():
        status, count = entry.split("=")
        errors[status] += int(count)
    answered = seen["requests"] - errors.total()
    errors.update({kind: seen[kind] for kind in ("connect", "read", "write", "timeout") if seen[kind]})
    return Load(answered / seen["seconds"], seen["p50"], seen["p99"], dict(errors))


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started, and the path and the name of the text in the body of each of its routes."""

    port: int
    command: Sequence[object]  # words of the command line
    routes: Mapping[str, tuple[str, str]]
    folder: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)  # further fields of each request's body


@contextmanager
def running(server: ServerCommand, log: Path) -> Iterator[int]:
    """Start a server, wait until it listens, and yield its process id; stop it at the end of the block.

    What it prints is written to `log`. Raises SystemExit if it does not start.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | server.environment
    with log.open("w") as output:
        process = subprocess.Popen(
            [*map(str, server.command)], cwd=server.folder, env=environment, stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + STARTS_WITHIN
        while not _listens(server.port):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{server.command[0]}: the server did not start; {log} has what it printed")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _listens(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def proportional_megabytes(process: int) -> float:
    """Return the memory of a process and all its children; a page that several map counts once (PSS)."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return own / 1024 + sum(map(proportional_megabytes, _children(process)))


def wait_until_idle(process: int) -> None:
    """Wait until a process and its children compute nothing: some servers go on after their callers have left.

    Raises SystemExit if that takes longer than IDLE_WITHIN seconds.
    """
    end, before = time.monotonic() + IDLE_WITHIN, processor_seconds(process)
    while time.monotonic() < end:
        time.sleep(0.5)
        now = processor_seconds(process)
        if now - before < 0.5 * IDLE:
            return
        before = now
    raise SystemExit(f"process {process}: still computes {IDLE_WITHIN} s after the last request")


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and all its children that live."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # seconds in user mode and in the kernel
    return own + sum(map(processor_seconds, _children(process)))


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


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
    if shutil.which("wrk") is None:
        raise Missing("wrk is not installed on this machine; it is the Debian package of that name")
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
    return 0


def make_server(name: str, work: Path, bundle: Path, texts: Texts, port: int) -> ServerCommand:
    """Return how the server of this name is started. Raises SystemExit if there is no server of that name."""
    from semsearch.indexing.models.source import find_model  # no part of the server that is measured

    model = find_model(None, None)[0]
    if name in (OURS, UNBATCHED):
        command: list[Any] = [sys.executable, "-m", "semsearch", "serve", bundle, "--port", port]
        command += ["--workers", WORKERS, *(("--tokens-per-batch", 1) if name == UNBATCHED else ())]
        return ServerCommand(port, command, ROUTES)
    if name == PEER:  # with one thread of torch in each worker
        command = [peer_python(work, "serve").with_name("gunicorn"), "-k", "uvicorn_worker.UvicornWorker"]
        command += ["-w", WORKERS, "--timeout", 300, "-b", f"127.0.0.1:{port}", "fastapi_peer:app"]
        environment = peer_environment(work, bundle, texts, TRANSFORMERS) | ONE_THREAD
        return ServerCommand(port, command, ROUTES, PEERS, environment)
    if name == INFINITY:  # as its documentation starts it on a processor; it searches nothing
        command = [peer_python(work, "infinity").with_name("infinity_emb"), "v2", "--model-id", model]
        command += ["--engine", "torch", "--device", "cpu", "--port", port, "--host", "127.0.0.1"]
        environment = {"HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
        routes, body = {"/predict": ("/embeddings", "input")}, {"model": str(model)}
        return ServerCommand(port, [*command, "--no-bettertransformer"], routes, PROJECT, environment, body)
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
                    ask(servers[name], work, route, texts[kind], 10, 2)  # warms the server up
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
    path, name = server.routes[route]
    mode = {"mode": "semantic"} if route == "/similar" else {}  # the other servers know no words
    bodies = work / "serve.jsonl"
    lines = [json.dumps({name: text, **mode, **server.body}) + "\n" for text in texts]
    bodies.write_text("".join(lines), encoding="utf-8")
    return load(f"http://127.0.0.1:{server.port}{path}", bodies, connections, seconds)


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
