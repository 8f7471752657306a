"""Versions of a bundle under one prefix of an S3 bucket, and the pointer that names the one to serve.

semsearch/aws/s3/published.py says how they are stored. The objects of a version never change.

A version's manifest is sent last, so a version without one is unfinished. A command replaces the pointer only if it has
not changed since the command read it: of two commands that switch it, one reports an error.

removed.json has all ids that the pointer has as removed. `remove` and `switch` write it before the pointer, `restore`
after it: so it can have more ids, and never fewer. It is read when there is no pointer.

Commands may run at the same time: `prune` deletes no version of which an object was written during the last day, and
`publish` writes the manifest of its version again before it switches the pointer.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from semsearch.aws.s3.published import BUNDLES, POINTER, REMOVED_IDS, is_version, parse_pointer
from semsearch.engine.bundle import (
    FORMAT_VERSION,
    MANIFEST,
    PASSAGES,
    BundleError,
    CorpusInfo,
    FileInfo,
    Manifest,
    check_bundle,
    check_file,
    parse_manifest,
    read_manifest,
)
from semsearch.engine.metadata.columns import IdColumn
from semsearch.engine.tensors import Array, Strings
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.publishing.bucket import Bucket, PublishError, StoredObject

# maximum removed ids: with their rows some 300 KB, which every function reads whenever the pointer changes
MOST_REMOVED = 10_000
SHOWN_IDS = 5  # maximum ids that a message names

SHORT = 12  # number of characters of a version in messages
# `prune` deletes no version with a younger object, because another command could be about to use it
YOUNG = timedelta(days=1)

Removed = Mapping[str, tuple[int, ...]]  # the rows of each removed id in the current version


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

    Without a pointer, the removed ids are those of removed.json, without their rows.
    """

    version: str | None = None
    previous: str | None = None
    etag: str | None = None
    removed: Removed = field(default_factory=dict)


class Pruned(NamedTuple):
    """What `prune` has deleted: versions, their bytes, and uploads that were never finished."""

    versions: list[str]
    bytes: int
    uploads: int


class Store:
    """The versions under one prefix of a bucket."""

    def __init__(self, client: Any, url: str, young: timedelta = YOUNG) -> None:
        """Take boto3's client of S3 and a URL such as s3://bucket/prefix. Raises PublishError for another URL."""
        self._bucket = Bucket(client, url)
        self._young = young
        self.url: str = self._bucket.url

    def pointer(self) -> Current:
        """Return what the pointer names. Raises PublishError if it cannot be read, BundleError if it is damaged."""
        reply = self._bucket.read(POINTER)
        if reply is None:
            return Current(removed=dict.fromkeys(self.kept_ids(), ()))
        content, etag = reply
        pointer = parse_pointer(content, f"{self.url}/{POINTER}")
        return Current(pointer.version, pointer.previous, etag, pointer.removed)

    def kept_ids(self) -> list[str]:
        """Return the ids of removed.json. Raises PublishError if it cannot be read, BundleError if it is damaged."""
        return self._read_kept()[0]

    def check_pointer(self, pointer: Current) -> None:
        """Raise PublishError if there is no pointer although versions are there: it was lost."""
        if pointer.version is None and (versions := _finished(self._folders(), None)):
            raise PublishError(
                f"{self.url}/{POINTER}: is missing, expected the pointer to one of {len(versions)} versions; run "
                f"`semsearch rollback {self.url} VERSION` with one that `semsearch history {self.url}` lists, or "
                "publish a bundle with --new-pointer. Both keep the removed ids"
            )

    def check_model(self, bundle: Path, pointer: Current) -> None:
        """Raise PublishError if a bundle has another model than the current version.

        Running functions would refuse it and new ones would take it, so two models would answer. Nothing is checked if
        the manifest of the current version is missing, damaged or of another format. Raises BundleError if the bundle
        has no manifest.
        """
        found = None
        if pointer.version is not None:
            found = self._bucket.read(_key(pointer.version, MANIFEST))
        if found is None:
            return
        ours = read_manifest(bundle)
        try:
            theirs = parse_manifest(found[0], self.url)
        except BundleError:
            return
        if not ours.has_model_of(theirs):
            raise PublishError(
                f"{bundle}: has {_shown_model(ours)}, expected {_shown_model(theirs)} with the same options, as the "
                f"current version of {self.url}; publish it under another prefix, or with --other-model if you then "
                "start all functions and servers again"
            )

    def send(self, bundle: Path, on_progress: OnProgress = no_progress) -> tuple[str, int, int]:
        """Send the files of a bundle that S3 lacks; return the version, and the numbers of files and bytes sent.

        Raises BundleError if the bundle does not open, is damaged or is replaced meanwhile, PublishError if S3 refuses.
        """
        manifest = check_bundle(bundle)
        content = (bundle / MANIFEST).read_bytes()
        version = hashlib.sha256(content).hexdigest()
        missing = self._missing(version, manifest)
        for name in missing:
            check_file(bundle, name, manifest)
            self._bucket.send_file(bundle / name, _key(version, name), manifest.files[name].sha256, on_progress)
        if (bundle / MANIFEST).read_bytes() != content:
            raise BundleError(
                f"{bundle}: was replaced while it was published; publish it again when no `semsearch index` writes it"
            )
        # sent again even if S3 has it, because `history` orders versions by the time of this object
        self._bucket.write(_key(version, MANIFEST), content)
        return version, len(missing), sum(manifest.files[name].bytes for name in missing)

    def fetch(self, folder: Path, on_progress: OnProgress = no_progress) -> None:
        """Fetch the current version into an empty folder. Raises PublishError, and BundleError if it is damaged."""
        pointer = self.pointer()
        self.check_pointer(pointer)
        version = pointer.version
        if version is None:
            raise PublishError(f"{self.url}: holds no published bundle; publish one first, or leave --update out")
        self._bucket.fetch_file(_key(version, MANIFEST), folder / MANIFEST)
        manifest = read_manifest(folder)
        for place, name in enumerate(manifest.files, start=1):
            self._bucket.fetch_file(_key(version, name), folder / name)
            check_file(folder, name, manifest)
            on_progress(f"fetch {self.url}", place / len(manifest.files))

    def make_current(self, version: str, before: Current) -> None:
        """Switch the pointer to a version, after a check that the version is complete.

        Raises PublishError if it is not complete or as `switch` does, BundleError if the manifest has another format.
        """
        self._check_whole(version)
        self.switch(version, before)

    def switch(self, version: str, before: Current) -> None:
        """Switch the pointer to a version. Removed ids stay removed.

        Raises PublishError if the pointer is not `before` any more, because another command has switched it.
        """
        now = self.pointer()
        self._keep(now.removed)
        if now.version == version:
            return
        if (now.version, now.previous) != (before.version, before.previous):
            raise PublishError(
                f"{self.url}/{POINTER}: another command switched it to {now.version and now.version[:SHORT]} in the "
                f"meantime; it stays so. If it should name {version[:SHORT]}, run "
                f"`semsearch rollback {self.url} {version[:SHORT]}`"
            )
        self._write_pointer(version, now.version, now.etag, _find_rows(self._bucket, version, now.removed))

    def remove(self, ids: Sequence[str]) -> Removed:
        """Make functions skip the texts with these ids, and return all removed ids.

        Raises PublishError, and changes nothing, if the current version lacks one of the ids, or has its texts in S3
        Vectors.
        """
        now = self.pointer()
        self.check_pointer(now)
        if now.version is None:
            raise PublishError(f"{self.url}: holds no current version; publish a bundle first")
        corpus = _read_corpus(self._bucket, now.version)
        if corpus is not None and corpus.vectors is not None:
            found = "the texts of the current version are in S3 Vectors, expected in the bundle"
            raise PublishError(f"{self.url}: {found}; nothing was removed; publish others to a new index")
        removed = _find_rows(self._bucket, now.version, [*now.removed, *ids])
        if unknown := [id for id in ids if not removed[id]]:
            raise PublishError(
                f"{self.url}: found {first_ids(unknown)}, expected ids of the current version; nothing was removed"
            )
        if len(removed) > MOST_REMOVED:
            raise PublishError(
                f"{self.url}: {len(removed):,} ids would be removed, expected at most {MOST_REMOVED:,}; publish a "
                "bundle without their texts, then restore these ids"
            )
        self._keep(removed)
        self._write_pointer(now.version, now.previous, now.etag, removed)
        return removed

    def restore(self, ids: Sequence[str]) -> None:
        """Make functions find the texts with these removed ids again.

        Raises PublishError, and changes nothing, if one of the ids is not removed.
        """
        now = self.pointer()
        self.check_pointer(now)
        kept, etag = self._read_kept()
        known = now.removed.keys() | set(kept)
        if unknown := [id for id in ids if id not in known]:
            raise PublishError(
                f"{self.url}: found {first_ids(unknown)}, expected removed ids; `semsearch history {self.url}` lists "
                "them"
            )
        restored = set(ids)
        if now.version is not None and restored & now.removed.keys():
            removed = {id: rows for id, rows in now.removed.items() if id not in restored}
            self._write_pointer(now.version, now.previous, now.etag, removed)
        if restored.intersection(kept):
            self._write_kept([id for id in kept if id not in restored], etag)

    def _write_pointer(self, version: str, previous: str | None, etag: str | None, removed: Removed) -> None:
        fields: dict[str, Any] = {
            "version": version,
            "previous": previous,
            "format_version": FORMAT_VERSION,
            "switched": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        if removed:
            fields["removed"] = removed
        self._write_unchanged(POINTER, fields, etag)

    def _read_kept(self) -> tuple[list[str], str | None]:
        """Return the ids of removed.json and its ETag; no ids and None if there is no such object."""
        reply = self._bucket.read(REMOVED_IDS)
        if reply is None:
            return [], None
        try:
            ids = json.loads(reply[0])["removed"]
            if not all(isinstance(id, str) for id in ids):
                raise TypeError("found an id that is no string")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BundleError(
                f"{self.url}/{REMOVED_IDS}: cannot be read ({error!r}), expected an object with a list of ids; if "
                f"{POINTER} is there, delete this object, and the next command writes it again"
            ) from error
        return ids, reply[1]

    def _keep(self, ids: Iterable[str]) -> None:
        """Add ids to removed.json. Those that are there stay: another command may be about to remove them."""
        wanted = dict.fromkeys(ids)
        if not wanted:
            return
        kept, etag = self._read_kept()
        if not wanted.keys() <= set(kept):
            self._write_kept([*dict.fromkeys(kept) | wanted], etag)

    def _write_kept(self, ids: Sequence[str], etag: str | None) -> None:
        self._write_unchanged(REMOVED_IDS, {"removed": ids}, etag)

    def _write_unchanged(self, name: str, fields: Mapping[str, Any], etag: str | None) -> None:
        """Write an object of JSON, unless another command has written it since it had this ETag; None: was missing."""
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        self._bucket.write(name, (json.dumps(fields) + "\n").encode(), condition)

    def _check_whole(self, version: str) -> None:
        where, advice = f"{self.url}: {version[:SHORT]} is not whole", "publish its bundle again"
        found = self._bucket.read(_key(version, MANIFEST))
        if found is None or hashlib.sha256(found[0]).hexdigest() != version:
            state = "damaged"
            if found is None:
                state = "missing"
            raise PublishError(f"{where}: {MANIFEST} is {state}; {advice}")
        missing = self._missing(version, parse_manifest(found[0], f"{self.url}/{_key(version, MANIFEST)}"))
        if missing:
            raise PublishError(f"{where}: {missing[0]} is missing, or has another length or SHA-256; {advice}")

    def _missing(self, version: str, manifest: Manifest) -> list[str]:
        there = {entry.name: entry.bytes for entry in self._bucket.entries(_key(version, ""))}

        def is_there(name: str, info: FileInfo) -> bool:
            key = _key(version, name)
            return there.get(key) == info.bytes and self._bucket.sha256_of(key) == info.sha256

        return [name for name, info in manifest.files.items() if not is_there(name, info)]

    def versions(self) -> list[Version]:
        """Return the finished versions, newest first."""
        return _finished(self._folders(), self.pointer().version)

    def find(self, start: str | None, pointer: Current) -> Version:
        """Return the version whose name begins with `start`; without `start`, the one before the current one.

        Raises PublishError if there is no such version, or more than one, and if `start` is empty.
        """
        if start == "":
            raise PublishError(
                f"{self.url}: found '' as the version, expected its first characters; leave it out for the version "
                "before the current one. Is a variable of your shell empty?"
            )
        if start is None:
            self.check_pointer(pointer)
            start = pointer.previous
        if start is None:
            raise PublishError(
                f"{self.url}: no version was served before; name one that `semsearch history {self.url}` lists"
            )
        matching = [version for version in self.versions() if version.name.startswith(start.lower())]
        if len(matching) != 1:
            found = f"{len(matching)} versions begin with {start!r}"
            raise PublishError(f"{self.url}: {found}, expected one; `semsearch history {self.url}` lists them")
        return matching[0]

    def prune(self, keep: int) -> Pruned:
        """Delete all versions but the newest `keep`, the young ones and those that the pointer names.

        What is young is decided by the clock of S3, not by that of this machine. Uploads that a killed `publish` has
        left are aborted. Raises PublishError if S3 refuses, BundleError if the pointer is damaged.
        """
        folders, oldest_young = self._folders(), self._bucket.now() - self._young
        newest = {version.name for version in _finished(folders, None)[:keep]}
        deleted, freed = [], 0
        for version, files in folders.items():
            is_young = max(entry.changed for entry in files.values()) >= oldest_young
            if is_young or version in newest:
                continue
            pointer = self.pointer()  # read again for each version, because deleting the others takes long
            if version not in (pointer.version, pointer.previous):
                # first the manifest: without it, a version is unfinished
                in_order = sorted(files, key=lambda name: name != MANIFEST)
                self._bucket.delete([_key(version, name) for name in in_order])
                deleted.append(version)
                freed += _bytes_of(files)
        return Pruned(deleted, freed, self._bucket.abort_uploads(f"{BUNDLES}/", oldest_young))

    def abort_old_uploads(self) -> int:
        """Abort uploads of bundles that began more than a day ago, by the clock of S3, and return their number.

        A killed `publish` leaves such uploads. Raises PublishError if S3 refuses.
        """
        return self._bucket.abort_uploads(f"{BUNDLES}/", self._bucket.now() - self._young)

    def _folders(self) -> dict[str, dict[str, StoredObject]]:
        found: dict[str, dict[str, StoredObject]] = {}
        for entry in self._bucket.entries(f"{BUNDLES}/"):
            version, _, name = entry.name.removeprefix(f"{BUNDLES}/").partition("/")
            if is_version(version):
                found.setdefault(version, {})[name] = entry
        return found


def _shown_model(manifest: Manifest) -> str:
    """Return what embeds the queries of a bundle, for a message."""
    model = manifest.model
    if not manifest.has_model:
        return f"no model, and embeddings of {model.dim} dimensions by {model.name}"
    return f"the model {model.name}"


def _key(version: str, name: str) -> str:
    return f"{BUNDLES}/{version}/{name}"


def _finished(folders: dict[str, dict[str, StoredObject]], current: str | None) -> list[Version]:
    found = [
        Version(name, files[MANIFEST].changed, _bytes_of(files), name == current)
        for name, files in folders.items()
        if MANIFEST in files
    ]
    # S3 has whole seconds: of two versions of the same one, the current one is the newer
    return sorted(found, key=lambda version: (version.published, version.is_current), reverse=True)


def _bytes_of(files: dict[str, StoredObject]) -> int:
    return sum(entry.bytes for entry in files.values())


def _find_rows(bucket: Bucket, version: str, ids: Iterable[str]) -> Removed:
    """Return the rows of each id in a version, () for an id that the version lacks. Raises PublishError.

    Without ids, nothing is read. A version whose texts are in S3 Vectors has no rows.
    """
    wanted = {id: id.encode("utf-8", "surrogatepass") for id in ids}
    if not wanted:
        return {}
    stored = Strings(*_read_ids(bucket, version))
    rows_of: dict[bytes, list[int]] = {encoded: [] for encoded in wanted.values()}
    for row in np.flatnonzero(IdColumn(stored).sorted.equals_any([*rows_of])).tolist():
        rows_of[stored[row]].append(row)
    return {id: tuple(rows_of[encoded]) for id, encoded in wanted.items()}


def first_ids(ids: Sequence[str]) -> str:
    """Return the first of some ids for a message: "'a', 'b' and 3 more"."""
    shown = ", ".join(map(repr, ids[:SHOWN_IDS]))
    if len(ids) > SHOWN_IDS:
        shown += f" and {len(ids) - SHOWN_IDS:,} more"
    return shown


def _read_corpus(bucket: Bucket, version: str) -> CorpusInfo | None:
    found = bucket.read(_key(version, MANIFEST))
    if found is None:
        raise PublishError(f"{bucket.url}/{_key(version, MANIFEST)}: is missing; publish its bundle again")
    return parse_manifest(found[0], f"{bucket.url}/{_key(version, MANIFEST)}").corpus_or_none


def _read_ids(bucket: Bucket, version: str) -> tuple[Array[np.uint8], Array[np.uint64]]:
    """Return the ids of a version as UTF-8 (n,) and offsets (rows + 1,). semsearch/engine/tensors.py has the format."""
    info = _read_corpus(bucket, version)
    if info is None or info.vectors is not None:
        return np.empty(0, np.uint8), np.zeros(1, np.uint64)
    name = _key(version, PASSAGES)
    begin = 8 + int.from_bytes(bucket.read_part(name, 0, 8), "little")
    header = json.loads(bucket.read_part(name, 8, begin - 8))
    (first, middle), (last, end) = (header[column]["data_offsets"] for column in ("ids", "ids.offsets"))
    ids = bucket.read_part(name, begin + first, middle - first)
    return np.frombuffer(ids, np.uint8), np.frombuffer(bucket.read_part(name, begin + last, end - last), np.uint64)
