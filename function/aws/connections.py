"""The endpoint of a service of AWS, and connections to it that stay open between requests."""

import ssl
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

# A router or firewall on the way can forget an idle connection without notice, and a request over it would only wait.
SECONDS_IDLE = 20.0


def named_endpoint(environment: Mapping[str, str], service: str) -> str | None:
    """Return the URL that the environment names for a service, such as "s3", by the variables of AWS's SDKs."""
    return environment.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environment.get("AWS_ENDPOINT_URL") or None


class Endpoint:
    """The address of a service. Its connections share a TLS context, which takes milliseconds to load."""

    def __init__(self, url: str, timeout: float) -> None:
        """Take a URL that begins with http:// or https://, and the maximum seconds between two bytes of an answer."""
        parts = urlsplit(url)
        self.host = parts.netloc  # with the port, if it is not the usual one
        self.path = parts.path.rstrip("/")  # precedes the path of each request
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout = timeout

    def connect(self) -> HTTPConnection:
        """Return a connection that is made with its first request, and made again after it was closed."""
        if self._tls is None:
            return HTTPConnection(self.host, timeout=self._timeout)
        return HTTPSConnection(self.host, timeout=self._timeout, context=self._tls)


class Connections:
    """The idle connections to an endpoint. Several threads can borrow them."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Connect to this endpoint when a request needs it. Idle connections are closed with this object."""
        self._endpoint = endpoint
        self._idle: list[tuple[HTTPConnection, float]] = []  # since when; a list's append and pop are atomic
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def borrow(self) -> Iterator[HTTPConnection]:
        """Yield an idle connection or a new one. After an error it is closed.

        An idle one is open (its `sock` is not None), but the other side can have closed it meanwhile.
        """
        connection = self._take_idle() or self._endpoint.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append((connection, time.time()))

    def _take_idle(self) -> HTTPConnection | None:
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:  # another thread took the last one
                return None
            # time.time also counts the time in which a function is frozen
            if 0 <= time.time() - since <= SECONDS_IDLE:
                return connection
            connection.close()
        return None

    def close(self) -> None:
        """Close the idle connections."""
        _close_all(self._idle)


def _close_all(idle: list[tuple[HTTPConnection, float]]) -> None:
    while idle:
        idle.pop()[0].close()
