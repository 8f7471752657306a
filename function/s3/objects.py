"""The three requests that a function sends to S3: GET, GET of a part, and GET if the object has changed.

boto3 would double a cold start, so this uses http.client and our own signature, without boto3's retries and its
configuration files. After a broken connection, a 500 or a 503, the same request is sent again.
"""

import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import NoReturn, TypeVar
from urllib.parse import quote

from function.aws.connections import Connections, Endpoint, named_endpoint
from function.aws.credentials import CredentialsError, CredentialSource
from function.aws.signature import UNRESERVED, sign
from function.engine.bundle import BundleError
from function.engine.inputs import split_s3_url
from function.engine.published import LARGEST_DOCUMENT

SERVICE = "s3"
TRIES = 4
PAUSE = 0.1  # seconds to wait after the first failure; doubled after each further one
TIMEOUT = 5.0  # maximum seconds between two bytes of a response
READ_AT_ONCE = 1 << 18  # maximum bytes of one read
CREDENTIAL_ERRORS = (b"ExpiredToken", b"InvalidAccessKeyId", b"InvalidToken", b"SignatureDoesNotMatch")
TRANSIENT = (408, 429, 500, 502, 503, 504)

Received = TypeVar("Received")


class RemoteError(BundleError):
    """S3 did not answer as expected. The message has the object, what was found and what to do."""


class _TransientError(Exception):
    """A failure after which the same request can succeed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An object and its ETag."""

    content: bytes
    etag: str


class Objects:
    """The objects under one prefix of a bucket. Several threads can use it; connections stay open until `close`."""

    def __init__(self, url: str, environment: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        """Take s3://BUCKET/PREFIX, and the endpoint, the region and the credentials from the environment."""
        self.url = url.rstrip("/")
        bucket, prefix = split_s3_url(url)
        self._region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        domain = f"s3.{self._region}.amazonaws.com{'.cn' * self._region.startswith('cn-')}"
        named = named_endpoint(environment, SERVICE)
        # Amazon expects the bucket before the domain, but its certificate does not cover bucket names with dots
        is_label = named is None and "." not in bucket
        self._endpoint = Endpoint(named or f"https://{f'{bucket}.' if is_label else ''}{domain}", timeout)
        folder = f"{self._endpoint.path}{'' if is_label else f'/{bucket}'}/"
        self._folder = f"{folder}{prefix}/" if prefix else folder
        self._credentials = CredentialSource(environment)
        self._connections = Connections(self._endpoint)
        self._in_use: set[HTTPConnection] = set()
        self._is_aborted = False

    def read(self, name: str, unless_etag: str | None = None) -> Answer | None:
        """Return an object, or None if it has this ETag. Raises RemoteError."""

        def read_document(reply: HTTPResponse) -> Answer:
            content = reply.read(LARGEST_DOCUMENT + 1)
            if len(content) > LARGEST_DOCUMENT:
                found = f"has more than {LARGEST_DOCUMENT} bytes"
                raise RemoteError(f"{self.url}/{name}: {found}; delete the object and publish again")
            if reply.length:  # bytes that are still missing
                raise _TransientError(f"ended after {len(content)} of {len(content) + reply.length} bytes")
            return Answer(content, reply.headers.get("etag", ""))

        return self._get(name, {"if-none-match": unless_etag} if unless_etag else {}, 200, read_document)

    def copy_part(self, name: str, begin: int, length: int, file: int) -> None:
        """Write `length` bytes of an object, from `begin` on, to the same place of an open file. Raises RemoteError.

        The file must have its final length already.
        """

        def write(reply: HTTPResponse) -> None:
            place = begin
            for part in _parts(reply, length):
                place += os.pwrite(file, part, place)  # unlike a write to a map, this lets other threads run

        self._get(name, {"range": f"bytes={begin}-{begin + length - 1}"}, 206, write)

    def close(self) -> None:
        """Close the connections; the next request opens a new one."""
        self._connections.close()

    def abort(self) -> None:
        """Abort the requests of other threads and refuse new ones, because the process ends."""
        self._is_aborted = True
        for connection in list(self._in_use):
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _get(
        self, name: str, headers: dict[str, str], expected: int, receive: Callable[[HTTPResponse], Received]
    ) -> Received | None:
        """Return what `receive` returns for a response with the expected status, None after a 304."""
        for number in range(1, TRIES + 1):
            try:
                with self._connections.borrow() as connection, self._abortable(connection):
                    reply = self._send(connection, name, headers)
                    if reply.status == 304:
                        reply.read()
                        return None
                    if reply.status != expected:
                        self._refuse(name, reply, expected)
                    return receive(reply)
            except (_TransientError, OSError, HTTPException) as error:
                if self._is_aborted:
                    raise RemoteError(f"{self.url}/{name}: aborted, since the process ends") from error
                if number == TRIES:
                    reason = str(error) or type(error).__name__
                    where = f"{self.url}/{name}"
                    raise RemoteError(f"{where}: {reason}, {TRIES} times; is {self._endpoint.host} up?") from error
                time.sleep(PAUSE * 2 ** (number - 1))
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _abortable(self, connection: HTTPConnection) -> Iterator[None]:
        """Let `abort` end the request that the block sends. Raises _TransientError if `abort` was called before."""
        self._in_use.add(connection)
        try:
            if self._is_aborted:
                raise _TransientError
            yield
        finally:
            self._in_use.discard(connection)

    def _send(self, connection: HTTPConnection, name: str, headers: dict[str, str]) -> HTTPResponse:
        path, now = quote(self._folder + name, safe=f"/{UNRESERVED}"), datetime.now(UTC)
        try:
            credentials = self._credentials.get(now)
        except CredentialsError as error:
            raise RemoteError(f"{self.url}: {error}") from error
        host = self._endpoint.host
        signed = sign("GET", host, path, headers, b"", credentials, self._region, SERVICE, now)
        connection.request("GET", path, headers=dict(signed))
        return connection.getresponse()

    def _refuse(self, name: str, reply: HTTPResponse, expected: int) -> NoReturn:
        code = re.search(rb"<Code>(\w+)</Code>", reply.read(4096))
        found = f"{reply.status} {code[1].decode() if code else reply.reason}"
        if reply.status in TRANSIENT:
            raise _TransientError(found)
        if code and code[1] in CREDENTIAL_ERRORS:
            raise RemoteError(f"{self.url}/{name}: {found}; get new credentials")
        if reply.status in (301, 307, 400):
            raise RemoteError(
                f"{self.url}/{name}: {found}; is the bucket in {self._region}? Set AWS_REGION to its region"
            )
        if reply.status in (403, 404):  # without s3:ListBucket, S3 answers 403 for a missing object too
            raise RemoteError(f"{self.url}/{name}: {found}; publish a bundle there, or allow s3:GetObject")
        raise RemoteError(f"{self.url}/{name}: {found}, expected {expected}; does {self._endpoint.host} speak S3?")


def _parts(reply: HTTPResponse, length: int) -> Iterator[bytes]:
    """Yield exactly `length` bytes as they arrive. Raises _TransientError if there are fewer or more."""
    place = 0
    while place < length:
        part = reply.read1(min(READ_AT_ONCE, length - place))
        if not part:
            raise _TransientError(f"ended after {place} of {length} bytes")
        yield part
        place += len(part)
    if reply.length or reply.read(1):
        raise _TransientError(f"sent more than {length} bytes")
