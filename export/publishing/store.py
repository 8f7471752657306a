"""Versions of a bundle under one prefix of an S3 bucket, and the pointer that names the one to serve.

function/engine/published.py says how they are stored. The objects of a version never change.

A version's manifest is sent last, so a version without one is unfinished. The pointer is only replaced if it is still
the one that was read before: of two commands that switch it, one wins and the other reports an error.

Commands may run at the same time: `prune` deletes no version of which an object was written during the last day, and
`publish` writes the manifest of its version again before it switches the pointer.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from export.index.indexer import check_checksum
from export.progress import OnProgress, no_progress
from export.publishing.bucket import Bucket, ChangedError, Entry
from export.publishing.client import PublishError
from export.publishing.removals import Removed, add_ids, drop_ids, find_rows, require_rows
from function.engine.bundle import FORMAT_VERSION, MANIFEST, BundleError, Manifest, open_bundle, parse_manifest
from function.engine.published import BUNDLES, POINTER, is_version, parse_pointer

ROUNDS = 3  # attempts to change the removed ids while other commands change the pointer
SHOWN = 12  # characters of a version in messages
SHORTEST_VERSION = 4  # characters that a user must give of a version
YOUNG = timedelta(days=1)  # `prune` deletes no version with a younger object: another command may be about to use it


@dataclass(frozen=True, slots=True)
class Version:
    """One published bundle."""

    name: str  # SHA-256 of its manifest.json, in hexadecimal
    published: datetime
    bytes: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Current:
    """The current version, the one before it, and the ETag of the pointer that names them; None if there is none.

    removed has the rows of each removed id in the current version.
    """

    version: str | None = None
    previous: str | None = None
    etag: str | None = None
    removed: Removed = field(default_factory=dict)


class Store:
    """The versions under one prefix of a bucket."""

    def __init__(self, client: Any, url: str, young: timedelta = YOUNG) -> None:
        """Take boto3's client of S3 and a URL such as s3://bucket/prefix. Raises PublishError if it is not one."""
        self._bucket = Bucket(client, url)
        self._young = young
        self.url = self._bucket.url

    def pointer(self) -> Current:
        """Return what the pointer names. Raises PublishError if it cannot be read, BundleError if it is damaged."""
        reply = self._bucket.read(POINTER)
        if reply is None:
            return Current()
        content, etag = reply
        pointer = parse_pointer(content, f"{self.url}/{POINTER}")
        return Current(pointer.version, pointer.previous, etag, pointer.removed)

    def send(self, bundle: Path, on_progress: OnProgress = no_progress) -> tuple[str, int, int]:
        """Send a bundle's files, except those that are there; return its version, and the files and bytes sent.

        Raises BundleError if the bundle does not open, is damaged or is replaced meanwhile, PublishError if S3 refuses.
        """
        manifest = open_bundle(bundle)
        content = (bundle / MANIFEST).read_bytes()
        version = hashlib.sha256(content).hexdigest()
        missing = self._missing(version, manifest)
        for name in missing:
            check_checksum(bundle, name, manifest)
            self._bucket.send_file(bundle / name, _key(version, name), manifest.files[name].sha256, on_progress)
        if (bundle / MANIFEST).read_bytes() != content:
            raise BundleError(f"{bundle}: was replaced while it was published; publish it again when no export runs")
        # sent again even if it is there: history orders versions by the time of this object
        self._bucket.write(_key(version, MANIFEST), content)
        return version, len(missing), sum(manifest.files[name].bytes for name in missing)

    def make_current(self, version: str, before: Current) -> None:
        """Let the pointer name a complete version, unless it has changed since `before` was read.

        Raises PublishError if the version is not whole, and BundleError if the manifest is of another release.
        """
        self._check_whole(version)
        self.switch(version, before)

    def switch(self, version: str, before: Current) -> None:
        """Let the pointer name a version, unless it has changed since `before` was read.

        Removed ids stay removed.
        Raises PublishError if another command has switched it to another version since.
        """
        while True:
            try:
                previous = before.previous if before.version == version else before.version
                removed = find_rows(self._bucket, version, before.removed)
                self._write_pointer(version, previous, before.etag, removed)
                return
            except ChangedError:
                now = self.pointer()
            winner = now.version
            if winner == version:  # another command published the same, or our own first try arrived after all
                return
            if (winner, now.previous) == (before.version, before.previous) and now.removed != before.removed:
                before = now  # another command removed or restored ids
                continue
            raise PublishError(
                f"{self.url}/{POINTER}: another command switched it to {winner and winner[:SHOWN]} in the meantime; it "
                f"stays so. If it should name {version[:SHOWN]}, run "
                f"`python -m export rollback {self.url} {version[:SHOWN]}`"
            ) from None

    def remove(self, ids: Sequence[str]) -> Current:
        """Let functions skip the texts with these ids, and return the new pointer.

        Raises PublishError, and changes nothing, if the current version lacks one of the ids.
        """

        def add(before: Current) -> Removed:
            assert before.version is not None
            removed = find_rows(self._bucket, before.version, add_ids(before.removed, ids, self.url))
            require_rows(removed, ids, self.url)
            return removed

        return self._change_removed(add)

    def restore(self, ids: Sequence[str]) -> Current:
        """Let functions find the texts with these removed ids again, and return the new pointer.

        Raises PublishError, and changes nothing, if one of the ids is not removed.
        """
        return self._change_removed(
            lambda before: {id: before.removed[id] for id in drop_ids(before.removed, ids, self.url)}
        )

    def _change_removed(self, change: Callable[[Current], Removed]) -> Current:
        """Write a pointer with other removed ids. Start again if another command has changed it meanwhile."""
        for _ in range(ROUNDS):
            before = self.pointer()
            if before.version is None:
                raise PublishError(f"{self.url}: holds no current version; publish a bundle first")
            removed = change(before)
            try:
                etag = self._write_pointer(before.version, before.previous, before.etag, removed)
            except ChangedError:
                continue
            return Current(before.version, before.previous, etag, removed)
        raise PublishError(f"{self.url}/{POINTER}: other commands changed it {ROUNDS} times meanwhile; try again")

    def _write_pointer(self, version: str, previous: str | None, etag: str | None, removed: Removed) -> str:
        """Replace the pointer that has this ETag and return the new one. Raises ChangedError and PublishError."""
        fields = {
            "version": version,
            "previous": previous,
            "format_version": FORMAT_VERSION,
            "switched": datetime.now(UTC).isoformat(timespec="microseconds"),
        } | ({"removed": removed} if removed else {})
        return self._bucket.replace(POINTER, (json.dumps(fields) + "\n").encode(), etag)

    def _check_whole(self, version: str) -> None:
        """Raise PublishError unless all objects of a version are there, with the lengths that its manifest states."""
        where, advice = f"{self.url}: {version[:SHOWN]} is not whole", "publish its bundle again"
        found = self._bucket.read(_key(version, MANIFEST))
        if found is None or hashlib.sha256(found[0]).hexdigest() != version:
            state = "missing" if found is None else "damaged"
            raise PublishError(f"{where}: {MANIFEST} is {state}; {advice}")
        missing = self._missing(version, parse_manifest(found[0], f"{self.url}/{_key(version, MANIFEST)}"))
        if missing:
            raise PublishError(f"{where}: {missing[0]} is missing or of another length; {advice}")

    def _missing(self, version: str, manifest: Manifest) -> list[str]:
        """Return the files of a version that are missing, or have another length than its manifest states."""
        there = {entry.name: entry.bytes for entry in self._bucket.entries(_key(version, ""))}
        return [name for name, info in manifest.files.items() if there.get(_key(version, name)) != info.bytes]

    def versions(self) -> list[Version]:
        """Return the finished versions, the one that was published last first."""
        return _finished(self._folders(), self.pointer().version)

    def find(self, start: str | None, pointer: Current) -> Version:
        """Return the version whose name begins with `start`; without `start`, the one before the current one.

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
        """Delete all but the newest versions, the young ones and those that the pointer names.

        Return the deleted versions and their bytes. Raises PublishError if S3 refuses, BundleError if the pointer is
        damaged.
        """
        self.pointer()  # refuses a damaged one before anything is listed
        folders, oldest_young = self._folders(), datetime.now(UTC) - self._young
        newest = {version.name for version in _finished(folders, None)[:keep]}
        deleted, freed = [], 0
        for version, files in folders.items():
            is_young = max(entry.changed for entry in files.values()) >= oldest_young
            if is_young or version in newest:
                continue
            pointer = self.pointer()  # read again for each version: deleting the others took a while
            if version not in (pointer.version, pointer.previous):
                in_order = sorted(
                    files, key=lambda name: name != MANIFEST
                )  # without a manifest a version is unfinished
                self._bucket.delete([_key(version, name) for name in in_order])
                deleted.append(version)
                freed += _bytes_of(files)
        return deleted, freed

    def _folders(self) -> dict[str, dict[str, Entry]]:
        """Return the objects of each version by file name; ignore other objects."""
        found: dict[str, dict[str, Entry]] = {}
        for entry in self._bucket.entries(f"{BUNDLES}/"):
            version, _, name = entry.name.removeprefix(f"{BUNDLES}/").partition("/")
            if is_version(version):
                found.setdefault(version, {})[name] = entry
        return found


def _key(version: str, name: str) -> str:
    return f"{BUNDLES}/{version}/{name}"


def _finished(folders: dict[str, dict[str, Entry]], current: str | None) -> list[Version]:
    """Return the versions that have a manifest, the one that was published last first."""
    found = [
        Version(name, files[MANIFEST].changed, _bytes_of(files), name == current)
        for name, files in folders.items()
        if MANIFEST in files
    ]
    return sorted(found, key=lambda version: version.published, reverse=True)


def _bytes_of(files: dict[str, Entry]) -> int:
    return sum(entry.bytes for entry in files.values())
