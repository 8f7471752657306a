"""The image that ships, built and started in Docker under Lambda's own emulator."""

import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.emulator import free_port, init_milliseconds, request_milliseconds, send_event
from bench.folders import PEERS, PROJECT
from bench.needs import require_docker
from bench.report import console

# The tag differs between checkouts: otherwise one that is built replaces the image that another measures.
IMAGE = f"semantic-search:bench-{sha256(str(PROJECT).encode()).hexdigest()[:8]}"
TASK = "/var/task"  # the folder of the function in Lambda's images
EMPTY_HANDLER = "empty_handler.handler"
EMULATOR = ("--entrypoint", "/usr/local/bin/aws-lambda-rie")  # the image's own, told to log how long INIT took
COMMAND = ("--log-level", "info", "/var/runtime/bootstrap")
HANDLER = "function.handler.handler"


def docker(*arguments: str) -> str:
    """Run docker and return what it printed on both streams. Raises SystemExit with that output if docker failed."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise SystemExit(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def base_image() -> str:
    """Return the name of the base image that the Dockerfile builds on."""
    return str(re.findall(r"^ARG BASE_IMAGE=(.+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)[0])


def build_image(work: Path, bundle: Path, project: Path = PROJECT, tag: str = IMAGE) -> None:
    """Build the image that ships with this bundle from a project's folder. Raises Missing if there is no Docker."""
    require_docker()
    context = work / "image-context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(bundle, context / "bundle")
    for name in ("function", "deploy"):
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        shutil.copytree(project / name, context / name, ignore=ignored)
    for name in ("Dockerfile", ".dockerignore", "requirements.txt"):
        shutil.copy2(project / name, context / name)
    console.print("building the image ...")
    docker("build", "--tag", tag, str(context))


def build_empty_image(base: str, tag: str) -> None:
    """Build an image that adds to this base image only a handler that does nothing."""
    docker("build", "--tag", tag, "--build-arg", f"BASE={base}", "--file", str(PEERS / "Dockerfile"), str(PEERS))


def image_python(image: str = IMAGE) -> str:
    """Return the version of an image's Python, such as 3.13.0."""
    return docker("run", "--rm", "--entrypoint", "python3", image, "--version").split()[-1]


def run_python(image: str, script: str, *arguments: str) -> str:
    """Run a script in an image, in the function's folder on a read-only root; return what it printed."""
    options = ("--rm", "--read-only", "--tmpfs", "/tmp", "--workdir", TASK, "--entrypoint", "python3")
    return docker("run", *options, image, "-c", script, *arguments)


@dataclass(frozen=True, slots=True)
class Container:
    """A running container: its name and the port that takes events."""

    name: str
    port: int

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and return the reply; the first starts INIT. Raises SystemExit if its status is not 200."""
        return send_event(f"127.0.0.1:{self.port}", event, self.printed)

    def printed(self) -> str:
        """Return all that the emulator and the function printed so far."""
        return docker("logs", self.name)

    def init_milliseconds(self) -> float:
        """Return how long INIT took, as the emulator reports it."""
        return init_milliseconds(self.printed())

    def request_milliseconds(self) -> list[float]:
        """Return how long each request took; the first includes INIT, because the emulator starts INIT with it."""
        return request_milliseconds(self.printed())

    def peak_megabytes(self) -> float:
        """Return the largest resident memory that a process of the container had."""
        peaks = re.findall(r"VmHWM:\s+(\d+)", docker("exec", self.name, "sh", "-c", "cat /proc/[0-9]*/status"))
        return max(map(int, peaks)) / 1024


@contextmanager
def started(options: Sequence[str] = (), handler: str = HANDLER, image: str = IMAGE) -> Iterator[Container]:
    """Run an image until the block ends, ready for its first event; `options` are docker's, such as --memory."""
    port = free_port()
    locked = ("--read-only", "--tmpfs", "/tmp", "--publish", f"127.0.0.1:{port}:8080", "--env", f"_HANDLER={handler}")
    name = docker("run", "--detach", *locked, *options, *EMULATOR, image, *COMMAND).strip()
    try:
        wait_for(f"http://127.0.0.1:{port}/")
        yield Container(name, port)
    finally:
        docker("rm", "--force", name)


def wait_for(url: str) -> None:
    """Return once the emulator answers. A path that it does not know gets a 404, and does not start INIT."""
    for _ in range(1_000):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:  # Docker accepts connections before the emulator listens, and resets them
            time.sleep(0.01)
    raise SystemExit(f"{url}: the emulator in the container does not answer within 10 s")
