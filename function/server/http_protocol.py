"""How the server reads HTTP: as uvicorn does with httptools, and two kinds of requests that those do not handle."""

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 65_536  # of what comes before a body, as in uvicorn's own protocol with h11; httptools has no limit
END_OF_HEAD = b"\r\n\r\n"
HTTP_2 = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)


class HttpProtocol(HttpToolsProtocol):
    """One connection.

    Without TLS, Java's HttpClient offers with each request to go on in HTTP/2 (`Upgrade: h2c`). A server may ignore
    the offer, but httptools then loses the request's body (https://github.com/Kludex/uvicorn/issues/2722). So the offer
    is removed before httptools reads it. A head without an end is refused before it fills the memory.
    """

    _is_in_head = False
    _is_in_body = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Read the next bytes that came."""
        if not self._is_in_body:
            head, end, rest = data.partition(END_OF_HEAD)
            if HTTP_2.search(head + end):
                data = HTTP_2.sub(b"", head + end) + rest
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.send_400_response(f"The headers have more than {MOST_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to read a body."""
        self._is_in_head, self._is_in_body = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        self._is_in_body = False
        super().on_message_complete()
