"""Servers under test: the commands that start them, their routes, and the memory of their processes."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.environments import ONE_THREAD
from bench.report import PEERS, PROJECT

PORT = 8399
STARTS_WITHIN = 180  # seconds
IDLE_WITHIN = 600  # seconds
IDLE = 0.1  # share of a core that an idle process may use


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started, and the path and the name of the text in the body of each of its routes."""

    command: Sequence[object]  # its words
    routes: Mapping[str, tuple[str, str]]
    folder: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)  # further fields of each request's body
    port: int = PORT

    def address(self, route: str) -> str:
        """Return the URL of one of its routes."""
        return f"http://127.0.0.1:{self.port}{self.routes[route][0]}"


OURS = {"/predict": ("/predict", "text"), "/similar": ("/similar", "text")}


def this_server(bundle: Path, *options: str, port: int = PORT) -> ServerCommand:
    """Return this project's server."""
    command = [sys.executable, "-m", "function", "--bundle", bundle.absolute(), "--port", str(port), *options]
    return ServerCommand(command, OURS, port=port)


def peer_server(python: Path, environment: dict[str, str], workers: int, port: int = PORT) -> ServerCommand:
    """Return FastAPI with sentence-transformers under gunicorn, with a thread of torch in each worker."""
    worker = ("-k", "uvicorn_worker.UvicornWorker", "-w", str(workers), "--timeout", "300")
    command = [python.with_name("gunicorn"), *worker, "-b", f"127.0.0.1:{port}", "fastapi_peer:app"]
    return ServerCommand(command, OURS, PEERS, {**ONE_THREAD, **environment}, port=port)


def infinity_server(python: Path, model: Path, port: int = PORT) -> ServerCommand:
    """Return infinity-emb with torch, as its documentation starts it on a processor; it searches nothing."""
    options = ["--model-id", model, "--engine", "torch", "--device", "cpu", "--port", str(port), "--host", "127.0.0.1"]
    command = [python.with_name("infinity_emb"), "v2", *options, "--no-bettertransformer"]
    environment = {"HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    routes = {"/predict": ("/embeddings", "input")}
    return ServerCommand(command, routes, PROJECT, environment, {"model": str(model)}, port)


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
