"""Versions of a bundle under one prefix of an S3 bucket, and the pointer that names the one to serve.

    prefix/bundles/<SHA-256 of manifest.json>/manifest.json, model.ort, …    never changed
    prefix/current.json    {"version": that SHA-256, "previous": the one before, "format_version", "switched": when}

A version's manifest is sent last, so a version without one is unfinished. The pointer is only replaced if it is still
the one that was read before: of two commands that switch it, one wins and the other is told.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from export.publishing.errors import PublishError
from function.engine.bundle import FORMAT_VERSION, MANIFEST, open_bundle

POINTER = "current.json"
BUNDLES = "bundles"
SHORTEST_VERSION = 4  # characters of a version that name it
SECONDS_UNFINISHED = 24 * 60 * 60  # an unfinished version that is older is taken for abandoned
DELETED_AT_ONCE = 1000  # objects; the most that DeleteObjects takes

Show = Callable[[str, float], None]  # the name of a file, and which share of it is sent


@dataclass(frozen=True, slots=True)
class Version:
    """One published bundle; its files are those of its manifest."""

    name: str  # SHA-256 of its manifest.json, in hexadecimal
    published: datetime
    files: int
    bytes: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Pointer:
    """Which version is served, which one was before, and the ETag of the object that says so; None where none is."""

    version: str | None = None
    previous: str | None = None
    etag: str | None = None


class Store:
    """One prefix of a bucket, through a client of boto3."""

    def __init__(self, client: Any, url: str) -> None:
        """Take a URL such as s3://bucket/prefix. Raises PublishError if it is not one."""
        parts = urlsplit(url)
        if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
            raise PublishError(f"{url}: expected s3://BUCKET/PREFIX")
        self.url = url.rstrip("/")
        self._client = client
        self._bucket = parts.netloc
        prefix = parts.path.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def pointer(self) -> Pointer:
        """Return the pointer. Raises PublishError if it cannot be read or is not one."""
        with self._explained(POINTER):
            try:
                reply = self._client.get_object(Bucket=self._bucket, Key=self._prefix + POINTER)
            except self._client.exceptions.NoSuchKey:
                return Pointer()
            content = reply["Body"].read()
        try:
            found = json.loads(content)
            return Pointer(str(found["version"]), found["previous"], reply["ETag"])
        except (ValueError, KeyError, TypeError) as error:
            where = f"{self.url}/{POINTER}: {error!r} in {content[:60]!r}"
            raise PublishError(f"{where}; delete the object and publish again") from error

    def send(self, bundle: Path, show: Show) -> tuple[str, int, int]:
        """Send a bundle's files, except those that are there; return its version, and the files and bytes sent.

        Raises BundleError if the bundle does not open, PublishError if S3 refuses.
        """
        manifest = open_bundle(bundle)
        content = (bundle / MANIFEST).read_bytes()
        version = hashlib.sha256(content).hexdigest()
        folder = f"{self._prefix}{BUNDLES}/{version}/"
        there = {entry["Key"]: entry["Size"] for entry in self._list(folder)}
        missing = [name for name, info in manifest.files.items() if there.get(folder + name) != info.bytes]
        for name in missing:
            self._send_file(bundle / name, folder + name, manifest.files[name].sha256, show)
        # sent again even if it is there: history orders versions by the time of this object
        self._put(folder + MANIFEST, content)
        return version, len(missing), sum(manifest.files[name].bytes for name in missing)

    def switch(self, version: str, before: Pointer) -> None:
        """Let the pointer name a version, unless it is no longer the one that was read before.

        Raises PublishError if somebody else has switched it since.
        """
        fields = {
            "version": version,
            "previous": before.previous if before.version == version else before.version,
            "format_version": FORMAT_VERSION,
            "switched": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        content = json.dumps(fields) + "\n"
        condition = {"IfNoneMatch": "*"} if before.etag is None else {"IfMatch": before.etag}
        try:
            self._put(self._prefix + POINTER, content.encode(), **condition)
        except _ChangedError:
            winner = self.pointer().version
            raise PublishError(
                f"{self.url}/{POINTER}: another command switched it to {winner and winner[:12]} in the meantime; it "
                f"stays so. If it should name {version[:12]}, run `python -m export rollback {self.url} {version[:12]}`"
            ) from None

    def versions(self) -> list[Version]:
        """Return the finished versions, the one that was published last first."""
        current = self.pointer().version
        return [
            Version(name, times[MANIFEST], len(sizes), sum(sizes.values()), name == current)
            for name, (times, sizes) in sorted(
                ((name, found) for name, found in self._folders().items() if MANIFEST in found[0]),
                key=lambda entry: entry[1][0][MANIFEST],
                reverse=True,
            )
        ]

    def find(self, start: str | None, pointer: Pointer) -> Version:
        """Return the version whose name starts so, or else the one that was served before the current one.

        Raises PublishError if there is no such version, or more than one.
        """
        if start is None and pointer.previous is None:
            raise PublishError(f"{self.url}: no version was served before; name one that `history` lists")
        start = start or pointer.previous or ""
        matching = [version for version in self.versions() if version.name.startswith(start.lower())]
        if len(start) < SHORTEST_VERSION or len(matching) != 1:
            found = f"{len(matching)} versions start with {start!r}"
            raise PublishError(f"{self.url}: {found}, expected one, by {SHORTEST_VERSION} characters or more")
        return matching[0]

    def prune(self, keep: int) -> tuple[list[str], int]:
        """Delete all but the newest versions and those that the pointer names; return the deleted and their bytes.

        An unfinished version is deleted a day after its last file was sent, since somebody may still be sending it.
        """
        kept = {version.name for version in self.versions()[:keep]}
        oldest_unfinished = datetime.now(UTC) - timedelta(seconds=SECONDS_UNFINISHED)
        deleted, freed = [], 0
        for name, (times, sizes) in self._folders().items():
            is_abandoned = MANIFEST not in times and max(times.values()) < oldest_unfinished
            pointer = self.pointer()  # read each time, since somebody may switch it meanwhile
            if name in kept or name in (pointer.version, pointer.previous) or not (MANIFEST in times or is_abandoned):
                continue
            self._delete(name, list(sizes))
            deleted.append(name)
            freed += sum(sizes.values())
        return deleted, freed

    def _folders(self) -> dict[str, tuple[dict[str, datetime], dict[str, int]]]:
        """Return the time and the bytes of each file, by version and file name."""
        found: dict[str, tuple[dict[str, datetime], dict[str, int]]] = {}
        folder = f"{self._prefix}{BUNDLES}/"
        for entry in self._list(folder):
            version, _, name = entry["Key"].removeprefix(folder).partition("/")
            times, sizes = found.setdefault(version, ({}, {}))
            times[name], sizes[name] = entry["LastModified"], entry["Size"]
        return found

    def _list(self, folder: str) -> Iterator[dict[str, Any]]:
        with self._explained(folder):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=folder):
                yield from page.get("Contents", ())

    def _send_file(self, path: Path, key: str, sha256: str, show: Show) -> None:
        """Send one file in parts, several at once; S3 checks the SHA-256 of each."""
        size, sent = path.stat().st_size, 0

        def count(more: int) -> None:
            nonlocal sent
            sent += more
            show(path.name, sent / max(1, size))

        with self._explained(key):
            extra = {"ChecksumAlgorithm": "SHA256", "Metadata": {"sha256": sha256}}
            self._client.upload_file(str(path), self._bucket, key, ExtraArgs=extra, Callback=count)

    def _put(self, key: str, content: bytes, **condition: str) -> None:
        with self._explained(key):
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=content,
                ContentType="application/json",
                ChecksumAlgorithm="SHA256",
                **condition,
            )

    def _delete(self, version: str, names: list[str]) -> None:
        # the manifest first: without it the version is unfinished, whatever happens to the rest
        ordered = sorted(names, key=lambda name: name != MANIFEST)
        with self._explained(version):
            for begin in range(0, len(ordered), DELETED_AT_ONCE):
                objects = [
                    {"Key": f"{self._prefix}{BUNDLES}/{version}/{name}"}
                    for name in ordered[begin : begin + DELETED_AT_ONCE]
                ]
                reply = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
                if failed := reply.get("Errors"):
                    raise PublishError(f"{self.url}: {failed[0]['Key']}: {failed[0].get('Message')}; prune again")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Raise what S3 refuses as PublishError, and a condition that does not hold as _ChangedError."""
        try:
            yield
        except self._client.exceptions.NoSuchKey:
            raise
        except ClientError as error:
            code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"].get("HTTPStatusCode")
            # 409: two conditional writes at the same time, of which S3 asks one to try again
            if status in (409, 412) and code in ("PreconditionFailed", "ConditionalRequestConflict"):
                raise _ChangedError from error
            raise PublishError(f"{self.url}: {what}: {code}: {error.response['Error'].get('Message')}") from error
        except (BotoCoreError, S3UploadFailedError) as error:
            raise PublishError(f"{self.url}: {what}: {error}") from error


class _ChangedError(Exception):
    """The pointer is no longer the one that was read."""
