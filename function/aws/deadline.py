"""HTTP connections on which each request has a deadline, from connecting to the last byte of its answer.

The timeout of a socket starts again with each byte, so an answer that arrives byte by byte would never end. http.client
has no other timeout. Left out: looking up the host's name, which the resolver's own timeouts end.
"""

import io
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from time import monotonic


class TimedConnection(HTTPConnection):
    """A connection that is made with its first request, and again after it was closed."""

    def __init__(self, host: str, tls: ssl.SSLContext | None) -> None:
        """Take a host, with the port if it is not the usual one; without `tls` the connection is plain HTTP."""
        self._tls = tls
        if tls is not None:
            self.default_port = 443
        super().__init__(host)
        self._deadline = _Deadline(0.0, 0.0)

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], seconds: float, pause: float, body: bytes = b""
    ) -> HTTPResponse:
        """Send a request and return its answer, whose body is still to be read.

        Raises TimeoutError if there is no byte for `pause` seconds, or if `seconds` pass until the body is read; also
        while that is read. Raises OSError or HTTPException for other errors.
        """
        self._deadline = deadline = _Deadline(seconds, pause)
        self.response_class = partial(_TimedResponse, deadline=deadline)  # type: ignore[assignment] # it is only called
        if self.sock is not None:
            deadline.apply_to(self.sock)
        self.request(method, target, body or None, dict(headers))
        return self.getresponse()

    def connect(self) -> None:
        """Connect to the first address of the host that answers. `request` calls this when it has to."""
        error: OSError = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            connected = socket.socket(family, kind, protocol)
            try:
                self._deadline.apply_to(connected)
                connected.connect(address)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    self._deadline.apply_to(connected)
                    connected = self._tls.wrap_socket(connected, server_hostname=self.host)
            except OSError as failed:
                connected.close()
                self._deadline.check()
                error = failed
            else:
                self.sock = connected
                return
        raise error


class _Deadline:
    """When an answer must be whole, and how long to wait for each of its bytes."""

    def __init__(self, seconds: float, pause: float) -> None:
        self._seconds, self._pause = seconds, pause
        self._end = monotonic() + seconds

    def check(self) -> None:
        """Raise TimeoutError if the time is over."""
        if monotonic() >= self._end:
            raise TimeoutError(f"took more than {self._seconds:g} s")

    def apply_to(self, connected: socket.socket) -> None:
        """Let the next operation of a socket wait until the deadline at most. Raises TimeoutError if it is over."""
        self.check()
        connected.settimeout(min(self._pause, self._end - monotonic()))


class _TimedResponse(HTTPResponse):
    """An answer; reading it, its head included, raises TimeoutError after the deadline."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
        *,
        deadline: _Deadline,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock, deadline))


class _TimedReader(io.RawIOBase):
    """The bytes of a socket until a deadline."""

    def __init__(self, raw: io.RawIOBase, connected: socket.socket, deadline: _Deadline) -> None:
        self._raw, self._socket, self._deadline = raw, connected, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override] # typeshed: any buffer
        self._deadline.apply_to(self._socket)
        try:
            return self._raw.readinto(buffer)
        except TimeoutError:
            self._deadline.check()
            raise

    def close(self) -> None:
        self._raw.close()
        super().close()
