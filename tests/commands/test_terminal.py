"""What the commands share: they end in order, whatever happens to their streams."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.project import ROOT
from tests.server.running import RUNNING

SIGNALLED = """
import json, signal
from semsearch.commands.terminal import run

def import_compiled_module():
    try:
        signal.raise_signal(signal.{name})
    except BaseException:
        raise ImportError("initialization failed") from None  # as such modules do

print(json.dumps(run({command})))
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("command", ["lambda: signal.raise_signal(signal.{name})", "import_compiled_module"])
def test_a_signal_ends_a_command_with_its_code(
    in_a_new_process: Callable[..., Any], command: str, name: str, code: int
) -> None:
    assert in_a_new_process(SIGNALLED.replace("{command}", command).replace("{name}", name)) == code


def test_a_server_needs_no_standard_output(bundle: Path) -> None:
    command = f"exec {sys.executable} -m semsearch serve {bundle} --port 0 --workers 1 >&- <&-"
    with subprocess.Popen(["bash", "-c", command], cwd=ROOT, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            address = next(found[1] for line in server.stderr if (found := RUNNING.search(line.decode())))
            assert httpx.get(f"{address}/health", timeout=60).status_code == 200
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0
    assert b"Traceback" not in err
