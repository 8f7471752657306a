"""Small HTTP servers on this machine, which print nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Quiet:
    """A part of request handlers that prints no line for a request."""

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


class Handler(Quiet, BaseHTTPRequestHandler):
    """Answers each request by the subclass's `answer`, over connections that stay open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def do_CONNECT(self) -> None:
        self.answer()

    def answer(self) -> None:
        raise NotImplementedError

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def reply(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Send a reply. The headers can promise another length than that of the content."""
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def listening(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve for the block, and yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
