"""What wrk sees of a server: requests a second, milliseconds, and errors by kind."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import PEERS, Missing

TIMEOUT = 60  # seconds until wrk counts a request as an error


@dataclass(frozen=True, slots=True)
class Load:
    """The replies at one number of connections; errors are counts by status or by kind."""

    requests_per_second: float  # only requests that were answered with 200
    p50: float  # milliseconds, of all replies
    p99: float
    errors: dict[str, int]


def require_wrk() -> None:
    """Raise Missing if wrk is not on this machine."""
    if shutil.which("wrk") is None:
        raise Missing("wrk is not installed on this machine; it is the Debian package of that name")


def write_bodies(path: Path, bodies: Sequence[dict[str, Any]]) -> Path:
    """Write the bodies of requests for `load`, a line each, and return the path."""
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    return path


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
