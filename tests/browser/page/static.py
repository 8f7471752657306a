"""A static site, served as a static host does, at the rate of a network."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from threading import Lock
from typing import Any

from tests.stand_ins.http import Quiet, listening

CHUNK = 16_384  # bytes that the server sends at a time
LATENCY = 0.02  # seconds that the server waits before each reply, as on a way of 20 ms


@dataclass
class Rate:
    """The bytes a second that all replies of a server share, None for no limit; and the bytes that it has sent."""

    bytes: float | None = None
    sent: int = 0


@contextmanager
def serving(folder: Path, rate: Rate, gzipped: Collection[str] = ()) -> Iterator[str]:
    """Serve a folder at this rate, as a static host does; yield its address. gzipped has the suffixes of such files."""
    turn = Lock()

    class Files(Quiet, SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def end_headers(self) -> None:
            if gzipped:
                self.send_header("cache-control", "max-age=600")  # as GitHub Pages
            if self.path.partition("?")[0].endswith(tuple(gzipped)):
                self.send_header("content-encoding", "gzip")
            super().end_headers()

        def copyfile(self, source: Any, outputfile: Any) -> None:
            if rate.bytes is not None:
                time.sleep(LATENCY)
            while chunk := source.read(CHUNK):
                if rate.bytes is not None:
                    with turn:  # so that the replies share the rate
                        time.sleep(len(chunk) / rate.bytes)
                rate.sent += len(chunk)
                outputfile.write(chunk)

    with listening(partial(Files, directory=folder)) as address:
        yield f"{address}/"
