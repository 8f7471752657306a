"""python -m function in a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest
from starlette.types import ASGIApp

from function.server import uvicorn_server as server
from function.server.cli import bind
from function.server.disconnect import CancelOnDisconnect
from function.server.limits import Limits
from tests.project import ROOT

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


@contextmanager
def serving(app: ASGIApp, limits: Limits) -> Iterator[tuple[str, int]]:
    """Serve an app in a thread of this process, and return its address; stop it at the end of the block.

    Slow connections are looked for ten times a second.
    """
    (listener,) = bind("127.0.0.1", 0)
    listener.listen()
    is_alive, alive = os.pipe()
    watch = CancelOnDisconnect(app, lambda: None)
    thread = Thread(target=server.serve, args=(watch, limits, listener, False, is_alive))
    # only a main thread can prepare a worker, since it handles signals
    with patch.object(server, "TICKS_BETWEEN_CHECKS", 1), patch.object(server, "_prepare"):
        thread.start()
        try:
            host, port = listener.getsockname()
            yield host, port
        finally:
            os.close(alive)
            thread.join(30)
            os.close(is_alive)
            listener.close()
    assert not thread.is_alive()
