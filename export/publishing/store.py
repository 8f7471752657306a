"""Versions of a bundle under one prefix of an S3 bucket, and the pointer that names the one to serve.

    prefix/bundles/<SHA-256 of manifest.json>/manifest.json, model.ort, …    never changed
    prefix/current.json    {"version": that SHA-256, "previous": the one before, "format_version", "switched": when}

A version's manifest is sent last, so a version without one is unfinished. The pointer is only replaced if it is still
the one that was read before: of two commands that switch it, one wins and the other is told.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from export.indexer import check_checksum
from export.publishing.bucket import Bucket, ChangedError, Entry, Show
from export.publishing.errors import PublishError
from function.engine.bundle import FORMAT_VERSION, MANIFEST, BundleError, open_bundle
from function.engine.published import BUNDLES, POINTER, is_version, parse_pointer

SHORTEST_VERSION = 4  # characters of a version that name it
SECONDS_UNFINISHED = 24 * 60 * 60  # an unfinished version that is older is taken for abandoned


@dataclass(frozen=True, slots=True)
class Version:
    """One published bundle; its files are those of its manifest."""

    name: str  # SHA-256 of its manifest.json, in hexadecimal
    published: datetime
    files: int
    bytes: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Current:
    """The current version, the one before it, and the ETag of the pointer that names them; None if there is none."""

    version: str | None = None
    previous: str | None = None
    etag: str | None = None


class Store:
    """The versions under one prefix of a bucket."""

    def __init__(self, client: Any, url: str) -> None:
        """Take boto3's client of S3 and a URL such as s3://bucket/prefix. Raises PublishError if it is not one."""
        self._bucket = Bucket(client, url)
        self.url = self._bucket.url

    def pointer(self) -> Current:
        """Return what the pointer names. Raises PublishError if it cannot be read, BundleError if it is not one."""
        reply = self._bucket.read(POINTER)
        if reply is None:
            return Current()
        content, etag = reply
        pointer = parse_pointer(content, f"{self.url}/{POINTER}")
        return Current(pointer.version, pointer.previous, etag)

    def send(self, bundle: Path, show: Show) -> tuple[str, int, int]:
        """Send a bundle's files, except those that are there; return its version, and the files and bytes sent.

        Raises BundleError if the bundle does not open, is damaged or is replaced meanwhile, PublishError if S3 refuses.
        """
        manifest = open_bundle(bundle)
        content = (bundle / MANIFEST).read_bytes()
        version = hashlib.sha256(content).hexdigest()
        folder = f"{BUNDLES}/{version}/"
        there = {entry.name: entry.bytes for entry in self._bucket.entries(folder)}
        missing = {name: info for name, info in manifest.files.items() if there.get(folder + name) != info.bytes}
        for name, info in missing.items():
            check_checksum(bundle, name, manifest)
            self._bucket.send_file(bundle / name, folder + name, info.sha256, show)
        if (bundle / MANIFEST).read_bytes() != content:
            raise BundleError(f"{bundle}: was replaced while it was published; publish it again when no export runs")
        # sent again even if it is there: history orders versions by the time of this object
        self._bucket.write(folder + MANIFEST, content)
        return version, len(missing), sum(info.bytes for info in missing.values())

    def switch(self, version: str, before: Current) -> None:
        """Let the pointer name a version, unless it is no longer the one that was read before.

        Raises PublishError if somebody else has switched it to another version since.
        """
        fields = {
            "version": version,
            "previous": before.previous if before.version == version else before.version,
            "format_version": FORMAT_VERSION,
            "switched": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        content = json.dumps(fields) + "\n"
        try:
            self._bucket.replace(POINTER, content.encode(), before.etag)
        except ChangedError:
            winner = self.pointer().version
            if winner == version:  # somebody publishes the same, or our own first try arrived after all
                return
            raise PublishError(
                f"{self.url}/{POINTER}: another command switched it to {winner and winner[:12]} in the meantime; it "
                f"stays so. If it should name {version[:12]}, run `python -m export rollback {self.url} {version[:12]}`"
            ) from None

    def versions(self) -> list[Version]:
        """Return the finished versions, the one that was published last first."""
        current = self.pointer().version
        found = [
            Version(name, files[MANIFEST].changed, len(files), _bytes_of(files), name == current)
            for name, files in self._folders().items()
            if MANIFEST in files
        ]
        return sorted(found, key=lambda version: version.published, reverse=True)

    def find(self, start: str | None, pointer: Current) -> Version:
        """Return the version whose name starts so, or else the one that was served before the current one.

        Raises PublishError if there is no such version, or more than one.
        """
        if start is None and pointer.previous is None:
            raise PublishError(f"{self.url}: no version was served before; name one that `history` lists")
        start = start or pointer.previous or ""
        matching = [version for version in self.versions() if version.name.startswith(start.lower())]
        if len(start) < SHORTEST_VERSION:
            raise PublishError(
                f"{self.url}: {start!r} is too short; name a version by {SHORTEST_VERSION} characters or more"
            )
        if len(matching) != 1:
            found = f"{len(matching)} versions begin with {start!r}"
            raise PublishError(f"{self.url}: {found}, expected one; `history` lists them")
        return matching[0]

    def prune(self, keep: int) -> tuple[list[str], int]:
        """Delete all but the newest versions and those that the pointer names; return the deleted and their bytes.

        An unfinished version is deleted a day after its last file was sent, since somebody may still be sending it.
        """
        kept = {version.name for version in self.versions()[:keep]}
        oldest_unfinished = datetime.now(UTC) - timedelta(seconds=SECONDS_UNFINISHED)
        deleted, freed = [], 0
        for version, files in self._folders().items():
            is_finished = MANIFEST in files
            is_abandoned = max(entry.changed for entry in files.values()) < oldest_unfinished
            pointer = self.pointer()  # read each time, since somebody may switch it meanwhile
            if version in kept or version in (pointer.version, pointer.previous) or not (is_finished or is_abandoned):
                continue
            # the manifest first: without it the version is unfinished, whatever happens to the rest
            names = sorted(files, key=lambda name: name != MANIFEST)
            self._bucket.delete([f"{BUNDLES}/{version}/{name}" for name in names])
            deleted.append(version)
            freed += _bytes_of(files)
        return deleted, freed

    def _folders(self) -> dict[str, dict[str, Entry]]:
        """Return the objects of each version, by file name. What else is there was not published, and is left alone."""
        found: dict[str, dict[str, Entry]] = {}
        for entry in self._bucket.entries(f"{BUNDLES}/"):
            version, _, name = entry.name.removeprefix(f"{BUNDLES}/").partition("/")
            if is_version(version):
                found.setdefault(version, {})[name] = entry
        return found


def _bytes_of(files: dict[str, Entry]) -> int:
    return sum(entry.bytes for entry in files.values())
