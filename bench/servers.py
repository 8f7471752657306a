"""Servers under test: how each is started and asked, and the memory of its processes."""

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

from bench.contest import ONE_THREAD
from bench.folders import PEERS, PROJECT

PORT = 8399
STARTS_WITHIN = 180  # seconds


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started, and the path and the name of the text in the body of each of its routes."""

    command: Sequence[object]  # its words
    routes: Mapping[str, tuple[str, str]]
    folder: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)  # more fields of each body


OURS = {"/predict": ("/predict", "text"), "/similar": ("/similar", "text")}


def this_server(bundle: Path, *options: str) -> ServerCommand:
    """Return this project's server."""
    command = [sys.executable, "-m", "function", "--bundle", bundle.absolute(), "--port", str(PORT), *options]
    return ServerCommand(command, OURS)


def peer_server(python: Path, environment: dict[str, str], workers: int) -> ServerCommand:
    """Return FastAPI with sentence-transformers under gunicorn, with a thread of torch in each worker."""
    worker = ("-k", "uvicorn_worker.UvicornWorker", "-w", str(workers), "--timeout", "300")
    command = [python.with_name("gunicorn"), *worker, "-b", f"127.0.0.1:{PORT}", "fastapi_sentence_transformers:app"]
    return ServerCommand(command, OURS, PEERS, {**ONE_THREAD, **environment})


def infinity_server(python: Path, model: Path) -> ServerCommand:
    """Return infinity-emb with torch, as its documentation starts it on a processor; it searches nothing."""
    options = ["--model-id", model, "--engine", "torch", "--device", "cpu", "--port", str(PORT), "--host", "127.0.0.1"]
    command = [python.with_name("infinity_emb"), "v2", *options, "--no-bettertransformer"]
    environment = {"HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    return ServerCommand(command, {"/predict": ("/embeddings", "input")}, PROJECT, environment, {"model": str(model)})


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
        while not _listens():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{server.command[0]}: the server did not start; {log} has what it printed")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _listens() -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/openapi.json", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def proportional_megabytes(process: int) -> float:
    """Return the memory of a process and all its children; a page that several map counts once (PSS)."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own / 1024 + sum(proportional_megabytes(int(child)) for child in children)
