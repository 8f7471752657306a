"""A proxy between the function and S3 that answers some requests as a bad day would."""

import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

from tests.stand_ins.http import Handler

Fault = Callable[["Exchange"], None]
WAIT = 30.0  # seconds


class Exchange(Handler):
    """One request, passed on unless a fault takes it."""

    proxy: "Proxy"

    def answer(self) -> None:
        proxy = self.proxy
        proxy.asked.append((self.path, self.headers.get("range"), self.headers.get("if-none-match")))
        with proxy.lock:
            fault = next((each for each in proxy.faults if each.times and re.search(each.path, self.path)), None)
            if fault is not None:
                fault.times -= 1
        proxy.may_pass.wait(WAIT)
        if fault is not None:
            fault.answer(self)
        else:
            self.reply(*self.ask())

    def ask(self) -> tuple[int, dict[str, str], bytes]:
        """Return what S3 answers."""
        connection = HTTPConnection(self.proxy.target, timeout=WAIT)
        headers = {name.lower(): value for name, value in self.headers.items()} | {"host": self.proxy.target}
        connection.request("GET", self.path, headers=headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        names = ("etag", "last-modified", "x-amz-checksum-sha256")
        return reply.status, {name: reply.headers[name] for name in names if name in reply.headers}, content


@dataclass
class Planned:
    """A fault, the pattern of the paths that it hits, and how many requests it hits."""

    path: str
    answer: Fault
    times: int


class Proxy:
    """Listens on this machine and passes requests to `endpoint`."""

    def __init__(self, endpoint: str) -> None:
        self.target = urlsplit(endpoint).netloc
        self.faults: list[Planned] = []
        self.asked: list[tuple[str, str | None, str | None]] = []  # path, range, condition
        self.lock = threading.Lock()
        self.may_pass = threading.Event()  # cleared: requests wait
        self.may_pass.set()
        handler = type("Handler", (Exchange,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, path: str, fault: Fault, times: int = 1_000_000) -> None:
        """Let the next requests whose path matches meet a fault."""
        self.faults.append(Planned(path, fault, times))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.may_pass.set()
        self._server.shutdown()
        self._server.server_close()


def cut(exchange: Exchange) -> None:
    """Break the connection after half of the bytes."""
    status, headers, content = exchange.ask()
    exchange.reply(status, headers | {"content-length": str(len(content))}, content[: len(content) // 2])
    reset = struct.pack("ii", 1, 0)
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    exchange.close_connection = True


def refuse(status: int, code: str) -> Fault:
    """Return what answers with an error of S3's."""

    def answer(exchange: Exchange) -> None:
        exchange.reply(status, {}, f"<Error><Code>{code}</Code></Error>".encode())

    return answer


def delay(seconds: float) -> Fault:
    """Return what answers as S3, but late."""

    def answer(exchange: Exchange) -> None:
        time.sleep(seconds)
        with suppress(OSError):  # the function has hung up
            exchange.reply(*exchange.ask())

    return answer


def change(exchange: Exchange) -> None:
    """Change one byte."""
    status, headers, content = exchange.ask()
    middle = len(content) // 2
    exchange.reply(status, headers, content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


def cut_in_s3(exchange: Exchange) -> None:
    """Answer with half of the bytes, as if there were no more."""
    status, headers, content = exchange.ask()
    exchange.reply(status, headers, content[: len(content) // 2])


def crawl(exchange: Exchange) -> None:
    """Send a byte now and then, always before the function stops waiting for it."""
    status, headers, content = exchange.ask()
    exchange.reply(status, headers | {"content-length": str(len(content))}, b"")
    with suppress(OSError):  # the function has hung up
        for byte in content:
            time.sleep(0.01)
            exchange.wfile.write(bytes([byte]))
    exchange.close_connection = True


def dawdle(exchange: Exchange) -> None:
    """Send some bytes and then nothing for longer than the function waits."""
    status, headers, content = exchange.ask()
    exchange.reply(status, headers | {"content-length": str(len(content))}, content[:10])
    exchange.wfile.flush()
    time.sleep(0.5)
    exchange.close_connection = True
