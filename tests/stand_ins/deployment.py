"""A deployment on this machine: environments of Lambda, moto's AWS behind a proxy, and a disk that can be filled."""

import json
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

from bench import Missing
from bench.emulator import CONTEXT, sample_event

Answer = tuple[str, str, str]  # status or error, version of the bundle, body

DISK = "64m"  # size of a small disk
FAILED_START = "500 of a failed start"


class Environment:
    """An environment of Lambda: a process with the handler, which is stopped between requests.

    The first event starts the process. After a failed start or a crash, the next event starts another one.
    """

    def __init__(self, variables: Mapping[str, str], log: Path) -> None:
        """Start nothing yet. What the function prints is added to `log`."""
        self._variables, self._log = dict(variables), log
        self.process: Any = None
        self.is_old = False  # whether the next event goes to a new process
        self._is_busy = threading.Lock()  # an environment handles one event at a time

    def send(self, body: Mapping[str, object], key: str) -> Answer:
        """Return the answer to a search with an API key."""
        event = sample_event("/similar", dict(body))
        event["headers"]["authorization"] = f"Bearer {key}"
        reply = self.invoke(event)
        if reply is None:
            return FAILED_START, "", ""
        if "errorType" in reply:
            return f"500 {reply['errorType']}", "", ""
        return str(reply["statusCode"]), reply["headers"].get("x-bundle", ""), reply["body"]

    def invoke(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the reply to an event, None if the process ended because its start failed or it crashed.

        If the handler raises, the reply is what Lambda's runtime makes of the exception.
        """
        with self._is_busy:
            if self.is_old:
                self.stop()
            if self.process is None:
                self._start()
            os.kill(self.process.pid, signal.SIGCONT)
            try:
                self._events.send(event)
                reply: dict[str, Any] = self._events.recv()
            except (EOFError, OSError):
                self.stop()
                return None
            os.kill(self.process.pid, signal.SIGSTOP)
            return reply

    def _start(self) -> None:
        context = get_context("spawn")
        self._events, its_end = context.Pipe()
        self.process = context.Process(target=_answer, args=(its_end, self._variables, self._log))
        self.process.start()
        its_end.close()
        self.is_old = False

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def _answer(events: Connection, variables: dict[str, str], log: Path) -> None:
    os.environ.update(variables)
    with log.open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    from function.handler import handler  # starts the function

    while True:
        event = events.recv()
        try:
            reply = handler(event, CONTEXT)
        except Exception as error:  # noqa: BLE001  as Lambda's runtime, which goes on with the next event
            reply = {"errorType": type(error).__name__, "errorMessage": str(error)}
        events.send(reply)


def send_to_server(port: int, body: Mapping[str, object], key: str) -> Answer:
    """Return a server's answer to a search with an API key, on a connection of its own."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = Request(f"http://127.0.0.1:{port}/similar", json.dumps(body).encode(), headers)
    try:
        with urlopen(request, timeout=30) as reply:
            return str(reply.status), reply.headers["x-bundle"], reply.read().decode()
    except HTTPError as error:
        error.close()
        return str(error.code), error.headers.get("x-bundle", ""), ""
    except (OSError, HTTPException) as error:
        return type(getattr(error, "reason", error)).__name__, "", ""  # that of a URLError is another error


@contextmanager
def aws_on_this_machine() -> Iterator[str]:
    """Run moto's servers of all services of AWS for the block, and yield their address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # otherwise a line for each request
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        moto.stop()


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system at a new folder for the block. Raises Missing if this user cannot."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "small-disk", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        raise Missing("no small disk can be mounted; run this on Linux as root or by `unshare --map-root-user --mount`")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leave no room on the disk of a folder; return the file to remove."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free)
    return ballast
