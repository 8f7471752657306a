"""Check the head of a request further than httptools does."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import httptools

Headers = Sequence[tuple[bytes, bytes]]  # names in lower case, and values

FORM = "expected HTTP/1.1 as in RFC 9112"


class Refused(Exception):  # noqa: N818  an error of the caller, which gets a reply
    """A request that cannot be read, or is not read because of a limit."""

    def __init__(self, status: int, message: str) -> None:
        """Answer with this status; the message has the four parts of an error."""
        super().__init__(message)
        self.status = status


def check_head_bytes(found: int, most: int) -> None:
    """Raise Refused if a head is too large."""
    if found > most:
        raise Refused(431, f"headers: {found} bytes, expected {most} at most; send fewer or shorter headers")


def head_bytes(url: bytes, headers: Headers) -> int:
    """Return the bytes of a head without its method and version."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def target_fields(method: bytes, url: bytes) -> dict[str, Any]:
    """Return the method and the target of a request as fields of an ASGI scope. Raises Refused if it has no path."""
    if method == b"CONNECT":
        raise Refused(400, "request: CONNECT, expected a method for a path, such as GET; this server is no proxy")
    try:
        target = httptools.parse_url(url)
        path = (target.path or b"/").decode("ascii")
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError) as error:
        raise Refused(400, f"request: its target has no path, {FORM}; correct the client") from error
    return {
        "method": method.decode("ascii"),
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": target.query or b"",
    }


def check_head(version: str, headers: Headers, most_body_bytes: int) -> None:
    """Raise Refused for a request that httptools accepts and this server does not, or whose body is too large."""
    hosts = body_bytes = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            body_bytes = int(value)
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            found = f"transfer-encoding: {value[:20].decode('latin-1')!r}"
            raise Refused(400, f"{found}, expected chunked or none; change the header")
    if version not in ("1.0", "1.1"):
        raise Refused(400, f"request: HTTP/{version}, expected HTTP/1.1; correct the client")
    if hosts > 1 or (not hosts and version == "1.1"):
        raise Refused(400, f"host: {hosts} such headers, expected one; correct the client")
    if body_bytes > most_body_bytes:
        raise Refused(413, f"body: {body_bytes} bytes, at most {most_body_bytes}; send fewer or shorter texts")


def without_offer(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the bytes of a head without its offer of another protocol."""
    lines = [name + b": " + value for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([b"%s %s HTTP/%s" % (method, url, version.encode()), *lines, b"", b""])
