"""python -m function in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


@contextmanager
def started(bundle: Path | str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a server on a free port, with one worker unless the options say more; kill it at the end of the block."""
    command = [sys.executable, "-m", "function", "--bundle", str(bundle), "--port", "0", "--workers", "1", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(server: subprocess.Popen[str]) -> str:
    """Wait until the server says where it listens."""
    assert server.stdout is not None
    output = ""
    for line in server.stdout:
        output += line
        if found := RUNNING.search(line):
            return found[1]
    pytest.fail(f"the server ended before it listened:\n{output}")
