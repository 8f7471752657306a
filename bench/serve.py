"""How many requests a second the server answers, beside other servers, and what several agents of one index take.

wrk posts thousands of different texts of four words. The servers have the same model and the same cores, and take turns
at each number of connections. A figure is the median of the rounds. Memory is measured after all of them.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

from bench import DATA, PEERS, PROJECT, WORK, Missing
from bench.cold_start import TRANSFORMERS, peer_environment
from bench.emulator import wait_for
from bench.tables import make_provenance, report
from bench.work import ONE_THREAD, QUERY_WORDS, Texts, make_bundle, peer_python, read_texts
from semsearch.indexing.models.source import find_model

OURS, PEER, INFINITY = "this server", "FastAPI + gunicorn", "infinity-emb"
ROWS = 30_000  # texts in the index
BODIES = 5_000  # number of different texts
CONNECTIONS = (1, 40)
WARM_UP = (10, 2)  # connections and seconds of a first load, which is not counted
WORKERS = 2  # number of processes of each server that has workers
PORT = 8399
STARTS_WITHIN = 180  # maximum seconds until a server listens
TIMEOUT = 60  # seconds until wrk counts a request as an error
PAUSE = 2  # seconds after a load, in which a server can finish the requests that wrk has left
AGENTS = 5
QUESTION = {"query": "keep the texts private"}


@dataclass(frozen=True, slots=True)
class Load:
    """The replies at one number of connections: requests a second, and milliseconds."""

    requests_per_second: float
    p50: float
    p99: float


def parse(printed: str) -> Load:
    """Return what load.lua printed, as its last line. Raises SystemExit if a request got an error or no answer."""
    seen = json.loads(printed.splitlines()[-1])
    errors = {kind: seen[kind] for kind in ("statuses", "connect", "read", "write", "timeout") if seen[kind]}
    if errors:
        raise SystemExit(f"expected only replies with 200, found {errors}")
    return Load(seen["requests"] / seen["seconds"], seen["p50"], seen["p99"])


@dataclass(frozen=True, slots=True)
class Route:
    """The path of a route, the field of its body that has the text, and its other fields."""

    path: str
    text: str
    others: Mapping[str, str] = field(default_factory=dict)


PREDICT, SIMILAR, HYBRID, MCP, EMBEDDINGS = "/predict", "/similar", "hybrid /similar", "/mcp", "/v1/embeddings"
ROUTES = {
    PREDICT: Route(PREDICT, "text"),
    EMBEDDINGS: Route(EMBEDDINGS, "input"),
    SIMILAR: Route(SIMILAR, "text", {"mode": "semantic"}),
    HYBRID: Route(SIMILAR, "text", {"mode": "hybrid"}),
    MCP: Route(MCP, "query"),
}
# The peer knows no words, and has neither OpenAI's route nor tools. Its nearest own routes are asked.
PEER_ROUTES = dict.fromkeys((PREDICT, EMBEDDINGS, HYBRID), Route(PREDICT, "text"))
PEER_ROUTES |= dict.fromkeys((SIMILAR, MCP), Route(SIMILAR, "text"))


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started, and its routes."""

    port: int
    command: Sequence[object]  # words of the command line
    routes: Mapping[str, Route]
    folder: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)


@contextmanager
def running(server: ServerCommand, log: Path) -> Iterator[int]:
    """Start a server, wait until it listens, and yield its process id; stop it at the end of the block.

    What it prints is written to `log`. Raises SystemExit if it does not start.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | server.environment
    command = [*map(str, server.command)]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=server.folder, env=environment, stdout=output, stderr=output)
    try:
        wait_for(f"127.0.0.1:{server.port}", STARTS_WITHIN)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def proportional_megabytes(process: int) -> float:
    """Return the memory of a process and all its children; a page that several map counts once (PSS)."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return own / 1024 + sum(map(proportional_megabytes, children(process)))


def children(process: int) -> list[int]:
    """Return the child processes of a process, the oldest first."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def serve(*, rounds: int = 3, seconds: int = 5, work: Path = WORK, data: Path = DATA) -> None:
    """How many requests a second the server answers, beside FastAPI with sentence-transformers and infinity-emb.

    Args:
        rounds: loads of each kind, whose median counts.
        seconds: length of each load.
    """
    if shutil.which("wrk") is None:
        raise Missing("wrk is not installed on this machine; it is the Debian package of that name")
    work = work.absolute()
    texts = read_texts(data, ROWS)
    bundle = make_bundle(work, texts)
    servers = make_servers(work, bundle, texts)
    bodies = [" ".join(text.split()[:QUERY_WORDS]) for text in texts.texts[:BODIES]]
    seen, megabytes = measure(servers, work, bodies, rounds, seconds)
    details = {
        name: {case: [asdict(one) for one in loads] for case, loads in cases.items()} for name, cases in seen.items()
    }
    multiples = {name: ratios(seen, name) for name in servers}
    measured = {"megabytes": megabytes, "multiples": multiples, "seen": details}
    report("serve", *table(seen, megabytes), measured, make_provenance(texts.description()))


def make_servers(work: Path, bundle: Path, texts: Texts) -> dict[str, ServerCommand]:
    """Return how each server is started, by its name."""
    ports, model = [PORT, PORT + 1, PORT + 2], find_model(None, None)[0]
    own = [sys.executable, "-m", "semsearch", "serve", bundle, "--port", ports[0], "--workers", WORKERS]
    # gunicorn's workers have one thread of torch each
    peer = [peer_python(work, "serve").with_name("gunicorn"), "-k", "uvicorn_worker.UvicornWorker", "-w", WORKERS]
    peer += ["--timeout", 300, "-b", f"127.0.0.1:{ports[1]}", "fastapi_peer:app"]
    environment = peer_environment(work, bundle, texts, TRANSFORMERS) | ONE_THREAD
    # infinity-emb as its documentation starts it on a processor; it searches nothing
    infinity = [peer_python(work, "infinity").with_name("infinity_emb"), "v2", "--model-id", model]
    infinity += ["--engine", "torch", "--device", "cpu", "--port", ports[2], "--host", "127.0.0.1"]
    offline = {"HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    embeddings = dict.fromkeys((PREDICT, EMBEDDINGS), Route("/embeddings", "input", {"model": str(model)}))
    return {
        OURS: ServerCommand(ports[0], own, ROUTES),
        PEER: ServerCommand(ports[1], peer, PEER_ROUTES, PEERS, environment),
        INFINITY: ServerCommand(ports[2], [*infinity, "--no-bettertransformer"], embeddings, PROJECT, offline),
    }


def measure(
    servers: Mapping[str, ServerCommand], work: Path, texts: Sequence[str], rounds: int, seconds: int
) -> tuple[dict[str, dict[str, list[Load]]], dict[str, float]]:
    """Return the loads of each server, one for each round, by "route, texts, connections", and its megabytes."""
    seen: dict[str, dict[str, list[Load]]] = {name: {} for name in servers}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(running(server, work / f"serve-{server.port}.log"))
            for name, server in servers.items()
        }
        for number in range(rounds):
            for route in ROUTES:
                able = {name: server for name, server in servers.items() if route in server.routes}
                for server in able.values():
                    ask(server, work, route, texts, *WARM_UP)
                for connections in CONNECTIONS:
                    for name, server in able.items():
                        found = ask(server, work, route, texts, connections, seconds)
                        seen[name].setdefault(f"{route}, short, {connections}", []).append(found)
                print(f"round {number + 1} of {rounds}: {route}", flush=True)
        return seen, {name: proportional_megabytes(process) for name, process in processes.items()}


def ask(server: ServerCommand, work: Path, route: str, texts: Sequence[str], connections: int, seconds: int) -> Load:
    """Post these texts in turn over this many connections, each of which waits for its reply; return the load.

    Raises CalledProcessError if wrk cannot reach the server, and what `parse` raises.
    """
    asked = server.routes[route]
    bodies = work / "serve.jsonl"
    requests = ({asked.text: text, **asked.others} for text in texts)
    lines = [json.dumps(tool_call(each) if asked.path == MCP else each) + "\n" for each in requests]
    bodies.write_text("".join(lines), encoding="utf-8")
    command = ["wrk", f"-t{min(2, connections)}", f"-c{connections}", f"-d{seconds}s", "--timeout", f"{TIMEOUT}s"]
    script = ["-s", str(PEERS / "load.lua"), f"http://127.0.0.1:{server.port}{asked.path}", "--", str(bodies)]
    done = subprocess.run([*command, *script], check=True, capture_output=True, text=True)
    time.sleep(PAUSE)
    return parse(done.stdout)


def tool_call(arguments: Mapping[str, str]) -> dict[str, object]:
    """Return the message of MCP that calls the tool `search` with these arguments."""
    params = {"name": "search", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def median(loads: Sequence[Load]) -> Load:
    """Return the medians of the rounds."""
    rows = (astuple(one) for one in loads)
    return Load(*(statistics.median(values) for values in zip(*rows, strict=True)))


def ratio(loads: Sequence[Load], others: Sequence[Load]) -> float:
    """Return the requests a second as a multiple of another server's: the median over the rounds."""
    pairs = zip(loads, others, strict=True)
    return statistics.median(one.requests_per_second / other.requests_per_second for one, other in pairs)


def ratios(seen: Mapping[str, Mapping[str, Sequence[Load]]], other: str) -> dict[str, float]:
    """Return how many times the requests of another server this project's server answers, for each load of both."""
    ours, others = seen[OURS], seen[other]
    return {case.removeprefix("/"): ratio(ours[case], others[case]) for case in ours if case in others}


def table(
    seen: Mapping[str, Mapping[str, Sequence[Load]]], megabytes: Mapping[str, float]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and the rows, by load and then by server."""
    columns = ["route", "texts", "connections", "server", "requests/s", "x the peer", "p50 ms", "p99 ms", "MB"]
    rows = []
    for case in seen[OURS]:
        for name in [name for name, cases in seen.items() if case in cases]:
            loads = seen[name][case]
            found, multiple = median(loads), ratio(loads, seen[PEER][case])
            cells = [*case.split(", "), name, f"{found.requests_per_second:,.0f}", f"{multiple:.1f}"]
            rows.append((*cells, f"{found.p50:,.1f}", f"{found.p99:,.1f}", f"{megabytes[name]:.0f}"))
    return columns, rows


def agents(*, work: Path = WORK) -> None:
    """How much memory several `semsearch mcp` of one index take together, and how soon one answers.

    Memory is the proportional set size: pages that several processes have mapped are divided between them. The first
    answer is that of the tool `search`, from the start of the process on; the files are in the page cache.
    """
    command = [sys.executable, "-m", "semsearch", "mcp", str(make_bundle(work, None))]
    processes, seconds = [], []
    for _ in range(AGENTS):
        begin = time.perf_counter()
        agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        search_once(agent)
        seconds.append(time.perf_counter() - begin)
        processes.append(agent)
    megabytes = sum(proportional_megabytes(agent.pid) for agent in processes)
    for agent in processes:
        agent.communicate()
    rows = [
        ("seconds to the first answer, median", f"{statistics.median(seconds):.2f}"),
        (f"MB of {AGENTS} agents together", f"{megabytes:.0f}"),
    ]
    report("agents", ("what", "measured"), rows, {}, make_provenance("Python's own documentation"))


def search_once(agent: "subprocess.Popen[bytes]") -> None:
    """Let an agent's server search once, and wait for the reply."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write(json.dumps(tool_call(QUESTION)).encode() + b"\n")
    agent.stdin.flush()
    while b'"id"' not in agent.stdout.readline():
        pass
