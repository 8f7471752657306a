"""The address that the clients ask. They and these tests run in the environment that `make test-clients` makes.

The function runs in its own environment, in a process that is started once for all tests.
"""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.project import ROOT

PYTHON = ROOT / ".venv" / "bin" / "python"
KEY = "0123456789abcdef0123456789abcdef"
RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")

os.environ["HF_HUB_OFFLINE"] = "0"  # the hub's client refuses to ask any server at all if it is offline
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


@pytest.fixture(scope="session", params=["server", "events"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a running server, then of one that answers through Lambda's events."""
    yield from running(request.param)


# for tests of what does not depend on how a request arrives
on_the_server = pytest.mark.parametrize("address", ["server"], indirect=True)


@pytest.fixture(scope="session")
def closed() -> Iterator[str]:
    """The address of one that answers through Lambda's events, and only with KEY."""
    yield from running("keys")


def running(kind: str) -> Iterator[str]:
    """Yield the address of a server of this kind while it runs."""
    command = [str(PYTHON), "-m", "tests.clients.serve", kind]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        output = ""
        for line in process.stderr:
            output += line
            if found := RUNNING.search(line):
                yield found[1]
                process.kill()
                return
        pytest.fail(f"the server ended before it listened:\n{output}")
