"""The three requests that a function makes of S3: an object, a part of one, and one that has changed.

http.client and our own signature are what an import can afford in a cold start; no retries of boto3's, no others'
configuration. An answer that may be better a moment later (a broken connection, 500, 503) is asked for again.
"""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from function.remote.credentials import CredentialsError, CredentialSource
from function.remote.signature import quote_path, sign

TRIES = 4
PAUSE = 0.1  # seconds after the first failure; doubled after each other
TIMEOUT = 5.0  # seconds without a byte
LONGEST = 30.0  # seconds for one answer
READ_AT_ONCE = 1 << 20  # bytes
TRANSIENT = (408, 429, 500, 502, 503, 504)
LARGEST_DOCUMENT = 16 * 1024 * 1024  # bytes of a pointer or a manifest


class RemoteError(Exception):
    """S3 did not answer as expected: the message says which object, what was found and what to do."""


class _TransientError(Exception):
    """An answer that may be better a moment later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An object and its ETag."""

    content: bytes
    etag: str


class Objects:
    """The objects under one prefix of a bucket. Each thread has a connection of its own, until `close`."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        """Take s3://BUCKET/PREFIX, and the endpoint, the region and the credentials from the environment."""
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        prefix = parts.path.strip("/")
        self._region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        bucket = parts.netloc
        folder = f"/{prefix}/" if prefix else "/"
        if endpoint:
            self._is_tls, self._host = endpoint.startswith("https:"), urlsplit(endpoint).netloc
            self._folder = f"{urlsplit(endpoint).path.rstrip('/')}/{bucket}{folder}"
        else:
            domain = f"s3.{self._region}.amazonaws.com{'.cn' * self._region.startswith('cn-')}"
            # the certificate is for names with one label before the domain
            is_label = "." not in bucket
            self._is_tls, self._host = True, f"{bucket}.{domain}" if is_label else domain
            self._folder = folder if is_label else f"/{bucket}{folder}"
        self._credentials = CredentialSource(environment)
        self._of_thread = threading.local()
        self._connections: list[HTTPConnection] = []

    def read(self, name: str, newer_than: str | None = None) -> Answer | None:
        """Return an object, or None if its ETag is still newer_than. Raises RemoteError."""
        return self._ask(name, {"if-none-match": newer_than} if newer_than else {}, None)

    def read_into(self, name: str, begin: int, buffer: memoryview) -> None:
        """Fill a buffer with the bytes of an object from `begin` on. Raises RemoteError."""
        self._ask(name, {"range": f"bytes={begin}-{begin + len(buffer) - 1}"}, buffer)

    def close(self) -> None:
        """Close the connections of all threads; the next request makes one again."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def _ask(self, name: str, headers: dict[str, str], buffer: memoryview | None) -> Answer | None:
        for number in range(1, TRIES + 1):
            try:
                return self._ask_once(name, headers, buffer)
            except (_TransientError, OSError, HTTPException) as error:
                self._drop_connection()
                if number == TRIES:
                    reason = str(error) or type(error).__name__
                    raise RemoteError(f"{self.url}/{name}: {reason}, {TRIES} times; is {self._host} up?") from error
                time.sleep(PAUSE * 2 ** (number - 1))
        raise AssertionError("the last try returns or raises")

    def _ask_once(self, name: str, headers: dict[str, str], buffer: memoryview | None) -> Answer | None:
        path, now = quote_path(self._folder + name), datetime.now(UTC)
        try:
            credentials = self._credentials.get(now)
        except CredentialsError as error:
            raise RemoteError(f"{self.url}: {error}") from error
        connection = self._connection()
        connection.request("GET", path, headers=sign(self._host, path, headers, credentials, self._region, now))
        reply = connection.getresponse()
        if reply.status == 304:
            reply.read()
            return None
        if reply.status not in (200, 206) or (buffer is not None and reply.status == 200):
            self._refuse(name, reply)
        if buffer is not None:
            _fill(buffer, reply)
            return Answer(b"", "")
        content = bytearray(min(int(reply.headers.get("content-length") or 0), LARGEST_DOCUMENT))
        _fill(memoryview(content), reply)
        return Answer(bytes(content), reply.headers.get("etag", ""))

    def _refuse(self, name: str, reply: HTTPResponse) -> None:
        code = re.search(rb"<Code>(\w+)</Code>", reply.read(4096))
        found = f"{reply.status} {code[1].decode() if code else reply.reason}"
        self._drop_connection()
        if reply.status in TRANSIENT:
            raise _TransientError(found)
        advice = "publish a bundle there, or allow s3:GetObject"  # without s3:ListBucket, 403 means either
        raise RemoteError(f"{self.url}/{name}: {found}; {advice if reply.status in (403, 404) else 'see the code'}")

    def _connection(self) -> HTTPConnection:
        connection: HTTPConnection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            kind = HTTPSConnection if self._is_tls else HTTPConnection
            connection = self._of_thread.connection = kind(self._host, timeout=TIMEOUT)
            self._connections.append(connection)
        return connection

    def _drop_connection(self) -> None:
        if (connection := getattr(self._of_thread, "connection", None)) is not None:
            connection.close()  # it connects again when it is asked


def _fill(buffer: memoryview, reply: HTTPResponse) -> None:
    """Read exactly as many bytes as the buffer has. Raises _TransientError if there are fewer, or it takes too long."""
    end, place = time.monotonic() + LONGEST, 0
    while place < len(buffer):
        # one read of the socket, unlike readinto, so that the clock is looked at however slowly the bytes come
        part = reply.read1(min(READ_AT_ONCE, len(buffer) - place))
        if not part:
            raise _TransientError(f"ended after {place} of {len(buffer)} bytes")
        if time.monotonic() > end:
            raise _TransientError(f"sent {place} of {len(buffer)} bytes in {LONGEST:.0f} s")
        buffer[place : place + len(part)] = part
        place += len(part)
    if reply.read():
        raise _TransientError(f"sent more than {len(buffer)} bytes")
