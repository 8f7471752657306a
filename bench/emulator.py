"""Lambda's runtime interface emulator around a function that runs on this machine's own Python, without an image."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A function on this machine's own Python."""

    python: Path
    handler: str
    folder: Path  # the working folder, from which the handler is imported
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator: its process, the address it listens on, and the file it prints to."""

    process: subprocess.Popen[bytes]
    address: str
    log: IO[str]

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and return the reply; the first starts INIT. Raises SystemExit if its status is not 200."""
        return send_event(self.address, event, self.printed)

    def peak_megabytes(self) -> float:
        """Return the largest resident memory that the function's process had so far."""
        children = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            children += (task / "children").read_text().split()
        peaks = [re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child}/status").read_text()) for child in set(children)]
        return max((int(peak[1]) / 1024 for peak in peaks if peak), default=0.0)

    def printed(self) -> str:
        """Return all that the emulator and the function printed so far."""
        self.log.seek(0)
        return self.log.read()

    def init_milliseconds(self) -> float:
        """Return the duration of INIT. Raises SystemExit if it was not reported."""
        return init_milliseconds(self.printed())

    def request_milliseconds(self) -> list[float]:
        """Return the duration of each request in the order they came, as the REPORT lines state them."""
        return request_milliseconds(self.printed())


def send_event(address: str, event: dict[str, Any], printed: Callable[[], str]) -> dict[str, Any]:
    """Send one event to an emulator and return the reply.

    Raises SystemExit, with the end of what was printed, if the reply's status is not 200.
    """
    url = f"http://{address}/2015-03-31/functions/function/invocations"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(event).encode()), timeout=60) as answer:
        reply: dict[str, Any] = json.load(answer)
    if reply.get("statusCode") != 200:
        raise SystemExit(f"the function answered {reply}\n{printed()[-2000:]}")
    return reply


def init_milliseconds(printed: str) -> float:
    """Return the duration of INIT from what an emulator printed. Raises SystemExit if it was not reported."""
    found = re.search(r"INIT REPORT\(durationMs: ([\d.]+)", printed)
    if found is None:
        raise SystemExit(f"no INIT was reported\n{printed[-2000:]}")
    return float(found[1])


def request_milliseconds(printed: str) -> list[float]:
    """Return the duration of each request from the REPORT lines that an emulator printed, INIT's own left out."""
    found = re.findall(r"REPORT RequestId.*?(?<!Init )(?<!Billed )Duration: ([\d.]+) ms", printed)
    return [float(milliseconds) for milliseconds in found]


@contextmanager
def emulated(rie: Path, function: LocalFunction) -> Iterator[Emulator]:
    """Run the function under the emulator `rie` until the block ends."""
    address, runtime_api = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [str(rie), "--log-level", "info", "--runtime-interface-emulator-address", address]
    command += ["--runtime-api-address", runtime_api, str(function.python), "-m", "awslambdaric", function.handler]
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "AWS_LAMBDA_FUNCTION_TIMEOUT": "60", "PYTHONPATH": "."}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=function.folder, env=environment | function.environment, stdout=log, stderr=log
        )
        try:
            _wait_for(address)
            yield Emulator(process, address, log)
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(address: str) -> None:
    host, port = address.split(":")
    for _ in range(500):
        with socket.socket() as connection:
            if connection.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.01)
    raise SystemExit("the emulator did not start within 5 s")
