"""The objects under one prefix of an S3 bucket, through boto3's client. An error of S3 becomes a PublishError."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import boto3
from boto3.exceptions import S3UploadFailedError
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from semsearch.aws.s3.published import split_s3_url
from semsearch.engine.bundle import BundleError
from semsearch.indexing.progress import OnProgress

ATTEMPTS = 10  # maximum attempts of boto3 at each call, with growing pauses
READ_ATTEMPTS = (
    3  # maximum times that a small object is read, because boto3 does not repeat a call whose body broke off
)


class PublishError(BundleError):
    """A version that cannot be published or switched to: the message says where, what was found and what to do."""


def connect(service: str, endpoint: str | None = None, profile: str | None = None, region: str | None = None) -> Any:
    """Return a client of a service, such as "s3". Options that are None have the values that the AWS CLI uses.

    Raises PublishError if boto3 refuses the profile, the region or the endpoint.
    """
    # adaptive: sends fewer requests while a service is too busy
    retries: Any = {"mode": "adaptive", "max_attempts": ATTEMPTS}
    try:
        # the function and the other SDKs read AWS_REGION, boto3 does not
        session = boto3.Session(profile_name=profile, region_name=region or os.environ.get("AWS_REGION"))
        return session.client(service, endpoint_url=endpoint, config=Config(retries=retries))
    except (BotoCoreError, ValueError) as error:
        raise PublishError(f"AWS: {error}; check --profile, --region and --endpoint") from error


ALWAYS: Mapping[str, str] = {}  # writes without a condition
DELETED_AT_ONCE = 1000  # maximum objects of one DeleteObjects


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object of a listing."""

    name: str  # key without the prefix
    bytes: int
    changed: datetime


class Bucket:
    """One prefix of a bucket."""

    def __init__(self, client: Any, url: str) -> None:
        """Take a client of S3 and a URL such as s3://bucket/prefix. Raises PublishError for another URL."""
        try:
            self._bucket, prefix = split_s3_url(url)
        except ValueError as error:
            raise PublishError(f"found {error}") from error
        self.url: str = url.rstrip("/")
        self._client = client
        self._prefix = f"{prefix}/" if prefix else ""

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return a small object and its ETag, None if there is no such object. Raises PublishError."""
        with self._explained(name):
            for left in reversed(range(READ_ATTEMPTS)):
                try:
                    # boto3 compares the body with the SHA-256 that S3 keeps
                    reply = self._client.get_object(
                        Bucket=self._bucket, Key=self._prefix + name, ChecksumMode="ENABLED"
                    )
                except self._client.exceptions.NoSuchKey:
                    return None
                try:
                    return reply["Body"].read(), reply["ETag"]
                except BotoCoreError:  # the body broke off, or changed on its way
                    if not left:
                        raise
        raise AssertionError("the last read returns or raises")

    def sha256_of(self, name: str) -> str | None:
        """Return the SHA-256 that `send_file` stored with an object, None if it was stored otherwise.

        Raises PublishError.
        """
        with self._explained(name):
            reply = self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)
        sha256: str | None = reply["Metadata"].get("sha256")
        return sha256

    def read_part(self, name: str, begin: int, length: int) -> bytes:
        """Return `length` bytes of an object. Raises PublishError."""
        if not length:  # no range of bytes is empty
            return b""
        with self._explained(name):
            place = {"Bucket": self._bucket, "Key": self._prefix + name, "Range": f"bytes={begin}-{begin + length - 1}"}
            content: bytes = self._client.get_object(**place)["Body"].read()
            return content

    def fetch_file(self, name: str, path: Path) -> None:
        """Download an object to a file, several parts at once. Raises PublishError."""
        with self._explained(name):
            self._client.download_file(self._bucket, self._prefix + name, str(path))

    def entries(self, folder: str) -> Iterator[StoredObject]:
        """Yield the objects whose names begin with `folder`. Raises PublishError."""
        with self._explained(folder):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + folder):
                for found in page.get("Contents", ()):
                    yield StoredObject(found["Key"].removeprefix(self._prefix), found["Size"], found["LastModified"])

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

    def write(self, name: str, content: bytes, condition: Mapping[str, str] = ALWAYS) -> None:
        """Write a JSON object. Raises PublishError, also if the condition does not hold."""
        with self._explained(name):
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + name,
                Body=content,
                ContentType="application/json",
                ChecksumAlgorithm="SHA256",
                **condition,
            )

    def now(self) -> datetime:
        """Return the time by the clock of S3, which also dates its objects. Raises PublishError."""
        with self._explained("its clock"):
            reply = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1)
        return parsedate_to_datetime(reply["ResponseMetadata"]["HTTPHeaders"]["date"])

    def abort_uploads(self, folder: str, before: datetime) -> int:
        """Abort uploads of objects whose names begin with `folder` that began before a time; return their number.

        S3 keeps the parts of an upload that nobody finishes, and they are paid for. Raises PublishError.
        """
        aborted = 0
        with self._explained(folder):
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + folder):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"] < before:
                        name = {"Bucket": self._bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
                        self._client.abort_multipart_upload(**name)
                        aborted += 1
        return aborted

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
        try:
            yield
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"].get("Message")
            if code in ("PreconditionFailed", "ConditionalRequestConflict"):
                message = "another command changed it at the same time; run the command again"
            raise PublishError(f"{self.url}: {name}: {code}: {message}") from error
        except (BotoCoreError, S3UploadFailedError) as error:
            raise PublishError(f"{self.url}: {name}: {error}") from error
