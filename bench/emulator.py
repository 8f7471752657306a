"""The function under Lambda's runtime interface emulator, in its image or on this machine's Python, and its events."""

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.report import PEERS, PROJECT, console, require_docker
from function.image import SHIPPED

SAMPLE = PROJECT / "function" / "sample_events" / "http-api.json"
IN_IMAGE = Path("/usr/local/bin/aws-lambda-rie")  # the emulator in Lambda's base image
TASK = "/var/task"  # the folder of the function, its libraries and the bundle in Lambda's images
RUNTIME = "/var/runtime"  # the folder of the runtime's own packages
# The tag differs between checkouts: otherwise one that is built replaces the image that another measures.
IMAGE = f"semantic-search:bench-{sha256(str(PROJECT).encode()).hexdigest()[:8]}"
HANDLER, EMPTY_HANDLER = "function.handler.handler", "empty_handler.handler"
COMMAND = ("--log-level", "info", f"{RUNTIME}/bootstrap")  # the emulator logs the duration of INIT


class Context:
    """The part of Lambda's context object that the handler reads."""

    function_name = "bench"
    memory_limit_in_mb = 512
    aws_request_id = "00000000-0000-0000-0000-000000000000"
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:bench"


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
    """A function that runs under the emulator, on this machine's Python or in a container."""

    address: str  # host and port that take events
    printed: Callable[[], str]  # returns all that the emulator and the function printed so far
    # returns the largest resident memory so far, in megabytes, and the processor time so far, in milliseconds
    usage: Callable[[], tuple[float, float]]

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


@contextmanager
def emulated(rie: Path, function: LocalFunction) -> Iterator[Running]:
    """Run the function under the emulator `rie` until the block ends."""
    address, runtime_api = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [str(rie), "--log-level", "info", "--runtime-interface-emulator-address", address]
    command += ["--runtime-api-address", runtime_api, str(function.python), "-m", "awslambdaric", function.handler]
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "AWS_LAMBDA_FUNCTION_TIMEOUT": "60", "PYTHONPATH": "."}
    environment |= {name: os.environ[name] for name in ("LD_PRELOAD",) if name in os.environ}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=function.folder, env=environment | function.environment, stdout=log, stderr=log
        )

        def printed() -> str:
            log.seek(0)
            return log.read()

        try:
            wait_for(address)
            yield Running(address, printed, partial(_usage_of_children, process.pid))
        finally:
            process.terminate()
            process.wait()


def _usage_of_children(process: int) -> tuple[float, float]:
    children: set[str] = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        children |= {*(task / "children").read_text().split()}
    peak = milliseconds = 0.0
    for child in children:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child}/status").read_text())
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        user, system = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
        milliseconds += (int(user) + int(system)) * 1000 / os.sysconf("SC_CLK_TCK")
    return peak, milliseconds


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(address: str) -> None:
    """Return once an emulator answers there, with 404 for a path that it does not know; that does not start INIT."""
    for _ in range(1_000):
        try:
            urllib.request.urlopen(f"http://{address}/", timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:  # Docker accepts connections before the emulator listens, and resets them
            time.sleep(0.01)
    raise SystemExit(f"{address}: the emulator does not answer within 10 s")


def docker(*arguments: str) -> str:
    """Run docker and return what it printed on both streams. Raises SystemExit with that output if docker failed."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise SystemExit(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def base_image() -> str:
    """Return the name of the base image that the Dockerfile builds on."""
    return str(re.findall(r"^ARG BASE_IMAGE=(.+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)[0])


def copy_function(folder: Path) -> None:
    """Copy the code of the function and its build scripts into a folder."""
    (folder / "semsearch").mkdir(parents=True, exist_ok=True)
    for name in SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        if name.endswith(".py"):
            shutil.copy2(PROJECT / name, folder / name)
        else:
            shutil.copytree(PROJECT / name, folder / name, ignore=ignored)


def build_image(work: Path, bundle: Path) -> None:
    """Build the image that ships, with this bundle. Raises Missing if there is no Docker."""
    require_docker()
    context = work / "image-context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(bundle, context / "bundle")
    copy_function(context)
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
