"""Lambda's runtime interface emulator around one function: started, asked, looked at and stopped."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class Candidate:
    """One function under test."""

    python: Path
    handler: str
    folder: Path  # the working folder, from which the handler is imported
    environment: dict[str, str]
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Emulator:
    """One that runs: its process, the address it listens on, and what it prints."""

    process: subprocess.Popen[bytes]
    address: str
    log: IO[str]

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and give what the handler returned. The first one starts INIT."""
        url = f"http://{self.address}/2015-03-31/functions/function/invocations"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(event).encode()), timeout=60) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer

    def peak_megabytes(self) -> float:
        """Give the largest resident memory that the function's process had so far."""
        children = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            children += (task / "children").read_text().split()
        peaks = [re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child}/status").read_text()) for child in set(children)]
        return max((int(peak[1]) / 1024 for peak in peaks if peak), default=0.0)

    def printed(self) -> str:
        """Give all that the emulator and the function printed so far."""
        self.log.seek(0)
        return self.log.read()

    def init_milliseconds(self) -> float:
        """Give the duration of INIT. Raises SystemExit if it was not reported."""
        return init_milliseconds(self.printed())

    def request_milliseconds(self) -> list[float]:
        """Give the duration of each request in the order they came, as the REPORT lines state them."""
        return request_milliseconds(self.printed())


def init_milliseconds(printed: str) -> float:
    """Give the duration of INIT from what an emulator printed. Raises SystemExit if it is not there."""
    found = re.search(r"INIT REPORT\(durationMs: ([\d.]+)", printed)
    if found is None:
        raise SystemExit(f"no INIT was reported\n{printed[-2000:]}")
    return float(found[1])


def request_milliseconds(printed: str) -> list[float]:
    """Give the duration of each request from the REPORT lines that an emulator printed, INIT's own left out."""
    found = re.findall(r"REPORT RequestId.*?(?<!Init )(?<!Billed )Duration: ([\d.]+) ms", printed)
    return [float(milliseconds) for milliseconds in found]


@contextmanager
def emulated(rie: Path, candidate: Candidate) -> Iterator[Emulator]:
    """Run the function under the emulator `rie` until the block ends."""
    address, runtime_api = f"127.0.0.1:{_free_port()}", f"127.0.0.1:{_free_port()}"
    command = [str(rie), "--log-level", "info", "--runtime-interface-emulator-address", address]
    command += ["--runtime-api-address", runtime_api, str(candidate.python), "-m", "awslambdaric", candidate.handler]
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "AWS_LAMBDA_FUNCTION_TIMEOUT": "60", "PYTHONPATH": "."}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=candidate.folder, env=environment | candidate.environment, stdout=log, stderr=log
        )
        try:
            _wait_for(address)
            yield Emulator(process, address, log)
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(address: str) -> None:
    host, port = address.split(":")
    for _ in range(500):
        with socket.socket() as one:
            if one.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.01)
    raise SystemExit("the emulator did not start within 5 s")
