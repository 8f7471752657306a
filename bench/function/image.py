"""The image that ships, built and started in Docker under Lambda's own emulator."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from bench.function.emulator import IN_IMAGE, RUNTIME, Running, free_port, wait_for
from bench.report import PEERS, PROJECT, console, require_docker

# The tag differs between checkouts: otherwise one that is built replaces the image that another measures.
IMAGE = f"semantic-search:bench-{sha256(str(PROJECT).encode()).hexdigest()[:8]}"
HANDLER, EMPTY_HANDLER = "function.handler.handler", "empty_handler.handler"
COMMAND = ("--log-level", "info", f"{RUNTIME}/bootstrap")  # the emulator logs the duration of INIT
# modules, files and folders that make the image, for the MEASURES of measurements that start it
MADE_WITH = (
    *("Dockerfile", "requirements.txt", "deploy.build_archive", "deploy.bytecode", "deploy.trim", "deploy/stubs"),
)


def docker(*arguments: str) -> str:
    """Run docker and return what it printed on both streams. Raises SystemExit with that output if docker failed."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise SystemExit(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def base_image() -> str:
    """Return the name of the base image that the Dockerfile builds on."""
    return str(re.findall(r"^ARG BASE_IMAGE=(.+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)[0])


def build_image(work: Path, bundle: Path) -> None:
    """Build the image that ships, with this bundle. Raises Missing if there is no Docker."""
    require_docker()
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


def build_handler_image(base: str, tag: str, context: Path) -> None:
    """Build an image that adds the handler, the packages and the data of this folder to a base image."""
    arguments = ("--build-arg", f"BASE={base}", "--file", str(PEERS / "Dockerfile"))
    docker("build", "--tag", tag, *arguments, str(context))


def image_python(image: str = IMAGE) -> str:
    """Return the version of an image's Python, such as 3.13.0."""
    return docker("run", "--rm", "--entrypoint", "python3", image, "--version").split()[-1]


@dataclass(frozen=True, slots=True)
class Container(Running):
    """A function in a running container of this name."""

    name: str


@contextmanager
def started(options: Sequence[str] = (), handler: str = HANDLER, image: str = IMAGE) -> Iterator[Container]:
    """Run an image until the block ends, ready for its first event; `options` are docker's, such as --memory."""
    address = f"127.0.0.1:{free_port()}"
    locked = ("--read-only", "--tmpfs", "/tmp", "--publish", f"{address}:8080", "--env", f"_HANDLER={handler}")
    name = docker("run", "--detach", *locked, *options, "--entrypoint", str(IN_IMAGE), image, *COMMAND).strip()
    try:
        wait_for(address)
        yield Container(address, partial(docker, "logs", name), partial(_usage, name), name)
    finally:
        docker("rm", "--force", name)


def _usage(name: str) -> tuple[float, float]:
    printed = docker("exec", name, "sh", "-c", "cat /proc/[0-9]*/stat /proc/[0-9]*/status")
    ticks = re.findall(r"^\d+ \(.*\) \S(?: \S+){10} (\d+) (\d+) ", printed, re.MULTILINE)  # user and system
    peak = max(map(int, re.findall(r"VmHWM:\s+(\d+)", printed))) / 1024
    return peak, sum(int(user) + int(system) for user, system in ticks) * 1000 / os.sysconf("SC_CLK_TCK")
