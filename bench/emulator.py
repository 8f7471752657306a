"""The function under Lambda's runtime interface emulator, on this machine's Python, and its events."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from bench import PROJECT
from function.image import SHIPPED

SAMPLE = PROJECT / "function" / "sample_events" / "http-api.json"
HANDLER = "function.handler.handler"
CONTEXT = SimpleNamespace(aws_request_id=None)  # what the handler reads of Lambda's context


def sample_event(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the sample event of an HTTP API, changed to a POST with this JSON body, or to a GET if body is None."""
    event: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    method = "GET" if body is None else "POST"
    event["routeKey"] = event["requestContext"]["routeKey"] = f"{method} {path}"
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["body"] = None if body is None else json.dumps(body)
    event["headers"]["content-length"] = str(len((event["body"] or "").encode()))
    return event


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A function on this machine's own Python; `folder` is the working folder, which the handler is imported from."""

    python: Path
    handler: str
    folder: Path
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Running:
    """A function that runs under the emulator."""

    address: str  # host and port that take events
    process: int  # the id of the emulator's process; the emulator starts the function at the first event
    log: IO[str]  # what the emulator and the function print

    def printed(self) -> str:
        """Return all that the emulator and the function printed so far."""
        self.log.seek(0)
        return self.log.read()

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and return the reply; the first one starts INIT.

        Raises SystemExit, with the end of what was printed, if the reply's status is not 200.
        """
        url = f"http://{self.address}/2015-03-31/functions/function/invocations"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(event).encode()), timeout=60) as answer:
            reply: dict[str, Any] = json.load(answer)
        if reply.get("statusCode") != 200:
            raise SystemExit(f"the function answered {reply}\n{self.printed()[-2000:]}")
        return reply

    def init_milliseconds(self) -> float:
        """Return the duration of INIT. Raises SystemExit if the emulator did not report it."""
        printed = self.printed()
        found = re.search(r"INIT REPORT\(durationMs: ([\d.]+)", printed)
        if found is None:
            raise SystemExit(f"no INIT was reported\n{printed[-2000:]}")
        return float(found[1])

    def request_milliseconds(self) -> list[float]:
        """Return the duration of each request in their order; the first includes INIT, which it starts."""
        found = re.findall(r"REPORT RequestId.*?(?<!Init )(?<!Billed )Duration: ([\d.]+) ms", self.printed())
        return [float(milliseconds) for milliseconds in found]

    def peak_megabytes(self) -> float:
        """Return the largest resident memory of the function so far."""
        children: set[str] = set()
        for task in Path(f"/proc/{self.process}/task").iterdir():
            children |= {*(task / "children").read_text().split()}
        status = "".join(Path(f"/proc/{child}/status").read_text() for child in children)
        return max(int(kilobytes) for kilobytes in re.findall(r"VmHWM:\s+(\d+)", status)) / 1024


@contextmanager
def emulated(rie: Path, function: LocalFunction) -> Iterator[Running]:
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
            wait_for(address)
            yield Running(address, process.pid, log)
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(address: str, seconds: float = 10) -> None:
    """Return once a server answers there, with any status; an emulator's 404 does not start INIT."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://{address}/", timeout=5).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"{address}: nothing answers within {seconds:.0f} s")


def copy_function(folder: Path) -> None:
    """Copy the code of the function and its build scripts into a folder."""
    (folder / "semsearch").mkdir(parents=True, exist_ok=True)
    for name in SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        if name.endswith(".py"):
            shutil.copy2(PROJECT / name, folder / name)
        else:
            shutil.copytree(PROJECT / name, folder / name, ignore=ignored)
