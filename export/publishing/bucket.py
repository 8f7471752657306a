"""The objects under one prefix of an S3 bucket, through boto3's client. What S3 refuses is a PublishError."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from export.progress import OnProgress
from export.publishing.client import PublishError
from function.engine.inputs import split_s3_url
from function.engine.published import LARGEST_DOCUMENT

ALWAYS: Mapping[str, str] = {}  # no condition
DELETED_AT_ONCE = 1000  # the most objects that one DeleteObjects takes


class ChangedError(Exception):
    """An object is no longer the one that a conditional write expected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing."""

    name: str  # after the prefix
    bytes: int
    changed: datetime


class Bucket:
    """One prefix of a bucket."""

    def __init__(self, client: Any, url: str) -> None:
        """Take a client of S3 and a URL such as s3://bucket/prefix. Raises PublishError if it is not one."""
        try:
            self._bucket, prefix = split_s3_url(url)
        except ValueError as error:
            raise PublishError(f"found {error}") from error
        self.url = url.rstrip("/")
        self._client = client
        self._prefix = f"{prefix}/" if prefix else ""

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return a small object and its ETag, None if it is not there. Raises PublishError."""
        with self._explained(name):
            try:
                reply = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            except self._client.exceptions.NoSuchKey:
                return None
            content = reply["Body"].read(LARGEST_DOCUMENT + 1)
        if len(content) > LARGEST_DOCUMENT:
            found = f"has more than {LARGEST_DOCUMENT} bytes"
            raise PublishError(
                f"{self.url}/{name}: {found}, expected a small document; delete the object and publish again"
            )
        return content, reply["ETag"]

    def read_part(self, name: str, begin: int, length: int) -> bytes:
        """Return `length` bytes of an object. Raises PublishError."""
        if not length:  # no range of bytes is empty
            return b""
        with self._explained(name):
            place = {"Bucket": self._bucket, "Key": self._prefix + name, "Range": f"bytes={begin}-{begin + length - 1}"}
            content: bytes = self._client.get_object(**place)["Body"].read()
            return content

    def entries(self, folder: str) -> Iterator[Entry]:
        """Yield the objects whose names begin with `folder`. Raises PublishError."""
        with self._explained(folder):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + folder):
                for found in page.get("Contents", ()):
                    yield Entry(found["Key"].removeprefix(self._prefix), found["Size"], found["LastModified"])

    def send_file(self, path: Path, name: str, sha256: str, on_progress: OnProgress) -> None:
        """Send one file in parts, several at once; S3 checks the SHA-256 of each. Raises PublishError."""
        size, sent = path.stat().st_size, 0

        def count(more: int) -> None:
            nonlocal sent
            sent += more
            on_progress(f"send {path.name}", sent / max(1, size))

        with self._explained(name):
            extra = {"ChecksumAlgorithm": "SHA256", "Metadata": {"sha256": sha256}}
            self._client.upload_file(str(path), self._bucket, self._prefix + name, ExtraArgs=extra, Callback=count)

    def write(self, name: str, content: bytes, condition: Mapping[str, str] = ALWAYS) -> str:
        """Write a document of JSON and return its ETag. Raises PublishError."""
        with self._explained(name):
            reply = self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + name,
                Body=content,
                ContentType="application/json",
                ChecksumAlgorithm="SHA256",
                **condition,
            )
        return str(reply["ETag"])

    def replace(self, name: str, content: bytes, etag: str | None) -> str:
        """Write a document as `write` does, if the object still has this ETag, or is still missing if etag is None.

        Raises ChangedError if it was changed, PublishError if it cannot be written.
        """
        return self.write(name, content, {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag})

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects, in this order. Raises PublishError."""
        for begin in range(0, len(names), DELETED_AT_ONCE):
            objects = [{"Key": self._prefix + name} for name in names[begin : begin + DELETED_AT_ONCE]]
            with self._explained(names[begin]):
                reply = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            if failed := reply.get("Errors"):
                raise PublishError(f"{self.url}: {failed[0]['Key']}: {failed[0].get('Message')}; prune again")

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Raise what S3 refuses as PublishError, and a condition that does not hold as ChangedError."""
        try:
            yield
        except ClientError as error:
            code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"].get("HTTPStatusCode")
            # 409: two conditional writes at the same time, of which S3 asks one to try again
            if status in (409, 412) and code in ("PreconditionFailed", "ConditionalRequestConflict"):
                raise ChangedError from error
            raise PublishError(f"{self.url}: {name}: {code}: {error.response['Error'].get('Message')}") from error
        except (BotoCoreError, S3UploadFailedError) as error:
            raise PublishError(f"{self.url}: {name}: {error}") from error
