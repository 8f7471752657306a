"""Connections to the address of a service, kept between requests."""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

# A router or firewall on the way can forget an idle connection without notice, and a request over it would only wait.
SECONDS_IDLE = 20.0


def named_endpoint(environment: Mapping[str, str], service: str) -> str | None:
    """Return the URL that the environment names for a service, such as "s3", by the variables of AWS's SDKs."""
    return environment.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environment.get("AWS_ENDPOINT_URL") or None


class Endpoint:
    """The address of a service, and connections to it that stay open between requests. Several threads can use it."""

    def __init__(self, url: str, timeout: float) -> None:
        """Take a URL that begins with http:// or https://, and the maximum seconds between two bytes of an answer.

        A request connects when it needs to. Idle connections are closed with this object.
        """
        parts = urlsplit(url)
        self.host: str = parts.netloc  # with the port, if it is not the usual one
        self.path: str = parts.path.rstrip("/")  # precedes the path of each request
        self._timeout = timeout
        # the connections share a TLS context, which takes milliseconds to load
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context()
        self._idle: list[tuple[HTTPConnection, float]] = []  # since when; a list's append and pop are atomic
        self._awaited: set[socket.socket] = set()  # those whose reply has not been read yet

    @contextmanager
    def borrow(self) -> Iterator[HTTPConnection]:
        """Yield an idle connection or a new one. After an error, it and all idle ones are closed.

        The other side can have closed an idle one meanwhile. Then the same request over a new one can succeed.
        """
        connection = self._take_idle() or self._make()
        try:
            yield connection
        except BaseException:
            connection.close()
            self.close()
            raise
        self._idle.append((connection, time.time()))

    @contextmanager
    def reply_of(self, connection: HTTPConnection) -> Iterator[HTTPResponse]:
        """Yield the reply to the request that a connection has just sent. `interrupt` can break it off."""
        waiting = connection.sock
        self._awaited.add(waiting)
        try:
            yield connection.getresponse()
        finally:
            self._awaited.discard(waiting)

    def interrupt(self) -> None:
        """Let the threads that wait for a reply, or read one, get an error now."""
        for waiting in list(self._awaited):
            with suppress(OSError):  # it was closed meanwhile
                waiting.shutdown(socket.SHUT_RDWR)

    def _take_idle(self) -> HTTPConnection | None:
        with suppress(IndexError):  # none is left
            while True:
                connection, since = self._idle.pop()
                # time.time also counts the time in which a function is frozen
                if 0 <= time.time() - since <= SECONDS_IDLE:
                    return connection
                connection.close()
        return None

    def _make(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self.host, timeout=self._timeout)
        return HTTPSConnection(self.host, timeout=self._timeout, context=self._tls)

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):  # none is left
            while True:
                self._idle.pop()[0].close()

    def __del__(self) -> None:
        self.close()
