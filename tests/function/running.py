"""python -m function in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


def start_server(*arguments: str) -> subprocess.Popen[str]:
    """Start the server and return its process; whoever starts it kills it."""
    command = [sys.executable, "-m", "function", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def address_of(server: subprocess.Popen[str]) -> str:
    """Wait until the server says where it listens."""
    assert server.stdout is not None
    output = ""
    for line in server.stdout:
        output += line
        if found := RUNNING.search(line):
            return found[1]
    pytest.fail(f"the server ended before it listened:\n{output}")
