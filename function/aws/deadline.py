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
    """A connection that is made with its first request, and made again after it was closed."""

    def __init__(self, host: str, tls: ssl.SSLContext | None) -> None:
        """Take a host, with the port if it is not the usual one. Without `tls` the connection is plain HTTP."""
        self._tls = tls
        if tls is not None:
            self.default_port = 443
        super().__init__(host)
        self._deadline = _Deadline(0.0, 0.0)

    def send_request(
        self, method: str, target: str, headers: Mapping[str, str], seconds: float, pause: float, body: bytes = b""
    ) -> HTTPResponse:
        """Send a request and return the response, whose body the caller reads.

        Raises TimeoutError if no byte arrives for `pause` seconds, or if the whole exchange takes more than `seconds`.
        Reading the body raises it too. Raises OSError or HTTPException for other errors.
        """
        self._deadline = deadline = _Deadline(seconds, pause)
        self.response_class = partial(_TimedResponse, deadline=deadline)  # type: ignore[assignment] # it is only called
        if self.sock is not None:
            deadline.apply_to(self.sock)
        self.request(method, target, body or None, dict(headers))
        return self.getresponse()

    def connect(self) -> None:
        """Connect to the first address of the host that answers; http.client calls this before a request."""
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
    """The time at which a response must be complete, and the maximum wait for each of its bytes."""

    def __init__(self, seconds: float, pause: float) -> None:
        self._seconds, self._pause = seconds, pause
        self._end = monotonic() + seconds

    def check(self) -> None:
        """Raise TimeoutError if the deadline has passed."""
        if monotonic() >= self._end:
            raise TimeoutError(f"took more than {self._seconds:g} s")

    def apply_to(self, connected: socket.socket) -> None:
        """Set a socket's timeout to the time left, or the pause if that is shorter. Raises TimeoutError if none is."""
        self.check()
        connected.settimeout(min(self._pause, self._end - monotonic()))


class _TimedResponse(HTTPResponse):
    """A response. Reading it, also its head, raises TimeoutError after the deadline."""

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
    """Reads a socket until a deadline."""

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
