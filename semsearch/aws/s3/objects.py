"""The three requests that a function sends to S3: GET, GET of a part, and GET if the object has changed.

boto3 would double a cold start, so this uses http.client and our own signature, without boto3's retries and its
configuration files. After a broken connection, a changed body, a 500 or a 503, the same request is sent again.
"""

import errno
import hashlib
import os
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime  # http.client imports it too
from http.client import HTTPException, HTTPResponse
from threading import Event, Thread
from typing import NoReturn, TypeVar
from urllib.parse import quote

from semsearch.aws.credentials import CredentialsError
from semsearch.aws.endpoint import named_endpoint
from semsearch.aws.requests import Service
from semsearch.aws.s3.published import split_s3_url
from semsearch.aws.signature import UNRESERVED
from semsearch.engine.bundle import BundleError

TRIES = 4
PAUSE = 0.1  # seconds to wait after the first failure; doubled after each further one
TIMEOUT = 5.0  # maximum seconds between two bytes of a response
READ_AT_ONCE = 1 << 18  # maximum bytes of one read
# `limited` allows this many seconds, and one second more each time that this many bytes have arrived
ALLOWED_SECONDS, BYTES_PER_SECOND = 60.0, 100_000
SECONDS_BETWEEN_TICKS = 1.0
# S3 keeps the SHA-256 of what `semsearch publish` writes. It sends it, in base64, to whoever asks for it.
CHECKSUM, WITH_CHECKSUM = "x-amz-checksum-sha256", {"x-amz-checksum-mode": "ENABLED"}
CREDENTIAL_ERRORS = (b"ExpiredToken", b"InvalidAccessKeyId", b"InvalidToken", b"SignatureDoesNotMatch")
TRANSIENT = (408, 429, 500, 502, 503, 504)
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)  # no fault of the connection: the second is that of a user's quota

Received = TypeVar("Received")


class RemoteError(BundleError):
    """A failure that can pass: S3 did not answer as expected, or the disk is full. The message says what to do."""


class _TransientError(Exception):
    """A failure after which the same request can succeed."""


class Objects:
    """The objects under one prefix of a bucket. Several threads can use it; connections stay open until `close`."""

    def __init__(self, url: str, environment: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        """Take s3://BUCKET/PREFIX, and the endpoint, the region and the credentials from the environment."""
        self.url: str = url.rstrip("/")
        bucket, prefix = split_s3_url(url)
        self._region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        domain = f"s3.{self._region}.amazonaws.com{'.cn' * self._region.startswith('cn-')}"
        named = named_endpoint(environment, "s3")
        # Amazon expects the bucket before the domain, but its certificate does not cover bucket names with dots
        is_label = named is None and "." not in bucket
        address = f"https://{f'{bucket}.' if is_label else ''}{domain}"
        self._service = Service("s3", self._region, address, timeout, environment)
        folder = "/" if is_label else f"/{bucket}/"
        self._folder = f"{folder}{prefix}/" if prefix else folder
        self._received = 0  # bytes that have arrived in the block of `limited`
        self._is_late = self._is_stopped = False

    def read(self, name: str, unless_etag: str | None = None) -> tuple[bytes, str] | None:
        """Return an object and its ETag, or None if it has the ETag `unless_etag`. Raises RemoteError."""
        headers = {"if-none-match": unless_etag} if unless_etag else {}
        return self._get(
            name, headers | WITH_CHECKSUM, 200, lambda reply: (_read_whole(reply), reply.headers.get("etag", ""))
        )

    def read_dated(self, name: str) -> tuple[bytes, float]:
        """Return an object, and when it was stored in seconds since 1970. Raises RemoteError."""

        def receive(reply: HTTPResponse) -> tuple[bytes, float]:
            content = _read_whole(reply)
            return content, parsedate_to_datetime(reply.headers["last-modified"]).timestamp()

        found = self._get(name, WITH_CHECKSUM, 200, receive)
        assert found is not None  # only a conditional request returns None
        return found

    def copy_part(self, name: str, begin: int, length: int, file: int) -> None:
        """Write `length` bytes of an object, from `begin` on, to the same place of an open file.

        Raises RemoteError, and OSError if the disk is full.
        """

        def write(reply: HTTPResponse) -> None:
            place = begin
            while (part := reply.read(READ_AT_ONCE)) and not self._is_stopped:
                place += os.pwrite(file, part, place)  # unlike a write to a map, this lets other threads run
                self._received += len(part)
            if place < begin + length:
                raise _TransientError(f"ended after {place - begin} of {length} bytes")

        self._get(name, {"range": f"bytes={begin}-{begin + length - 1}"}, 206, write)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Let the requests of the block fail when they take too long: `TIMEOUT` alone allows a byte each second.

        Only the time in which this process runs counts. Lambda freezes it between two requests of callers.
        """
        self._received, self._is_late = 0, False
        is_over = Event()

        def watch() -> None:
            seconds = 0.0
            while not is_over.wait(SECONDS_BETWEEN_TICKS):
                seconds += SECONDS_BETWEEN_TICKS
                if seconds > ALLOWED_SECONDS + self._received / BYTES_PER_SECOND:
                    self._is_late = True
                    self._service.endpoint.interrupt()

        Thread(target=watch, name="clock", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()

    def close(self) -> None:
        """Close the connections; the next request opens a new one."""
        self._service.endpoint.close()

    def stop(self) -> None:
        """Let running requests fail at their next bytes, or after their timeout, because the process ends."""
        self._is_stopped = True

    def _get(
        self, name: str, headers: dict[str, str], expected: int, receive: Callable[[HTTPResponse], Received]
    ) -> Received | None:
        """Return what `receive` returns for a response with the expected status, None after a 304."""
        path = quote(self._folder + name, safe=f"/{UNRESERVED}")
        for number in range(1, TRIES + 1):
            try:
                with self._service.request("GET", path, headers) as reply:
                    if reply.status == 304:
                        reply.read()
                        return None
                    if reply.status != expected:
                        self._refuse(name, reply, expected)
                    return receive(reply)
            except CredentialsError as error:
                raise RemoteError(f"{self.url}: {error}") from error
            except (_TransientError, OSError, HTTPException) as error:
                if isinstance(error, OSError) and error.errno in DISK_FULL:
                    raise
                if self._is_late:
                    raise RemoteError(
                        f"{self.url}/{name}: comes too slowly, expected {BYTES_PER_SECOND:,} bytes a second after "
                        f"{ALLOWED_SECONDS:.0f} seconds; look at the network to {self._service.endpoint.host}"
                    ) from error
                if number == TRIES or self._is_stopped:
                    reason = f"{str(error) or type(error).__name__}, {number} times"
                    raise RemoteError(f"{self.url}/{name}: {reason}; is {self._service.endpoint.host} up?") from error
                time.sleep(PAUSE * 2 ** (number - 1))
        raise AssertionError("the last try returns or raises")

    def _refuse(self, name: str, reply: HTTPResponse, expected: int) -> NoReturn:
        code = re.search(rb"<Code>(\w+)</Code>", reply.read(4096))
        found = f"{reply.status} {code[1].decode() if code else reply.reason}"
        if reply.status in TRANSIENT:
            raise _TransientError(found)
        if code and code[1] in CREDENTIAL_ERRORS:
            advice = "get new credentials"
        elif code and code[1] == b"RequestTimeTooSkewed":
            advice = "set the clock of this machine"
        elif reply.status in (301, 307, 400):
            advice = f"is the bucket in {self._region}? Set AWS_REGION to its region"
        elif reply.status in (403, 404):  # without s3:ListBucket, S3 answers 403 for a missing object too
            advice = "publish a bundle there, or allow s3:GetObject"
        else:
            advice = f"expected {expected}; does {self._service.endpoint.host} speak S3?"
        raise RemoteError(f"{self.url}/{name}: {found}; {advice}")


def _read_whole(reply: HTTPResponse) -> bytes:
    """Return the body of a reply with a whole object. Raises _TransientError if its SHA-256 is not that of the header.

    A service that is not Amazon's may send no such header.
    """
    content, expected = reply.read(), reply.headers.get(CHECKSUM)
    # that of an object that was sent in parts ends with their number, and is not that of the content
    if not expected or "-" in expected:
        return content
    if b64encode(hashlib.sha256(content).digest()).decode() != expected:
        raise _TransientError(f"{len(content)} bytes came whose SHA-256 is not that of the reply's header")
    return content
