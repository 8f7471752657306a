"""The image that ships, started in Docker under Lambda's own emulator."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.emulator import init_milliseconds, request_milliseconds
from bench.environments import PROJECT
from bench.report import console

IMAGE = "semantic-search:bench"
TASK = "/var/task"  # where Lambda's images have the function
EMULATOR = ("--entrypoint", "/usr/local/bin/aws-lambda-rie")  # as the image's own, but it says how long INIT took
COMMAND = ("--log-level", "info", "/var/runtime/bootstrap")
HANDLER = "function.handler.handler"


def docker(*arguments: str) -> str:
    """Run docker and return what it printed on both streams. Raises SystemExit with it if it failed."""
    if shutil.which("docker") is None:
        raise SystemExit("there is no docker on this machine; the image runs in it")
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise SystemExit(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def base_image() -> str:
    """Return the name that the Dockerfile has after FROM."""
    found: list[str] = re.findall(r"^ARG BASE_IMAGE=(.+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    return found[0]


def build_image(work: Path, bundle: Path) -> float:
    """Build the image with this bundle; return the megabytes that it holds over its base, unpacked."""
    context = work / "image-context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(bundle, context / "bundle")
    for name in ("function", "deploy"):
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        shutil.copytree(PROJECT / name, context / name, ignore=ignored)
    for name in ("Dockerfile", ".dockerignore", "requirements.txt"):
        shutil.copy2(PROJECT / name, context / name)
    console.print("building the image ...")
    docker("build", "--tag", IMAGE, str(context))
    ours, below = (int(docker("image", "inspect", "--format", "{{.Size}}", name)) for name in (IMAGE, base_image()))
    return (ours - below) / 1e6


@dataclass(frozen=True, slots=True)
class Container:
    """The image, running: its name and the port that takes events."""

    name: str
    port: int

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and return the reply; the first starts INIT. Raises SystemExit unless the status is 200."""
        url = f"http://127.0.0.1:{self.port}/2015-03-31/functions/function/invocations"
        request = urllib.request.Request(url, json.dumps(event).encode())
        for attempt in range(100):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    reply: dict[str, Any] = json.load(answer)
                break
            except (urllib.error.URLError, ConnectionError) as error:  # the emulator does not listen yet
                if attempt == 99:
                    raise SystemExit(f"the container does not answer: {error}") from error
                time.sleep(0.05)
        if reply.get("statusCode") != 200:
            raise SystemExit(f"the function answered {reply}")
        return reply

    def init_milliseconds(self) -> float:
        """Return how long INIT took, as the emulator reports it."""
        return init_milliseconds(docker("logs", self.name))

    def request_milliseconds(self) -> list[float]:
        """Return how long each request took; the first has INIT in it, which the emulator starts with it."""
        return request_milliseconds(docker("logs", self.name))

    def peak_megabytes(self) -> float:
        """Return the largest resident memory that a process of the container had."""
        peaks = re.findall(r"VmHWM:\s+(\d+)", docker("exec", self.name, "sh", "-c", "cat /proc/[0-9]*/status"))
        return max(map(int, peaks)) / 1024


@contextmanager
def started(options: Sequence[str] = (), handler: str = HANDLER) -> Iterator[Container]:
    """Run the image until the block ends; `options` are docker's own, such as --memory or --volume."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    locked = ("--read-only", "--tmpfs", "/tmp", "--publish", f"127.0.0.1:{port}:8080", "--env", f"_HANDLER={handler}")
    name = docker("run", "--detach", *locked, *options, *EMULATOR, IMAGE, *COMMAND).strip()
    try:
        yield Container(name, port)
    finally:
        docker("rm", "--force", name)
