"""semsearch serve in a process of its own."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.project import ROOT

RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")
WAIT = 60  # seconds, at most

Samples = dict[tuple[str, ...], float]


@contextmanager
def started(
    bundle: Path | str,
    *options: str,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = ("-m", "semsearch"),
) -> Iterator[subprocess.Popen[str]]:
    """Start a server on a free port, with one worker unless the options say more; kill it at the end of the block.

    program is what Python runs: arguments that run the command `semsearch`.
    """
    command = [sys.executable, *program, "serve", str(bundle), "--port", "0", "--workers", "1", *options]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # its workers end a second later


def address_of(server: subprocess.Popen[str]) -> str:
    """Wait until the server says where it listens."""
    assert server.stdout is not None
    output = ""
    for line in server.stdout:
        output += line
        if found := RUNNING.search(line):
            return found[1]
    pytest.fail(f"the server ended before it listened:\n{output}")


def drain(server: subprocess.Popen[str]) -> list[str]:
    """Read what a server prints in a thread, because a full pipe would stop it; return the lines until now."""
    assert server.stdout is not None
    printed: list[str] = []

    def read() -> None:
        with suppress(ValueError):  # the stream is closed when the server is killed
            printed.extend(server.stdout or ())

    threading.Thread(target=read, daemon=True).start()
    return printed


def eventually(is_so: Callable[[], bool]) -> bool:
    """Return whether something becomes so in time."""
    end = time.monotonic() + WAIT
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def counted(text: str) -> Samples:
    """Return the samples of our metrics: by name and the values of their labels, in the order of the labels' names."""
    return {
        (
            sample.name.removeprefix("semantic_search_"),
            *(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def metrics_of(address: str) -> Samples:
    """Return the counts of all workers."""
    return counted(httpx.get(f"{address}/metrics", trust_env=False, timeout=WAIT).text)
