"""Fetch the files of a published bundle into a local folder, and verify them before anything reads them."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock

from function.engine.bundle import (
    MANIFEST,
    MODEL,
    TOKENIZER,
    TRUNCATED,
    BundleError,
    FileInfo,
    Manifest,
    parse_manifest,
    read_manifest,
)
from function.engine.published import BUNDLES, POINTER, Pointer, parse_pointer
from function.s3.objects import Objects

PART = 8 * 1024 * 1024  # bytes that one request fetches
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # no path, and nothing that a URL or a folder changes
MODEL_FILES = (MODEL, TOKENIZER)  # linked instead of fetched if a local bundle has the same

Check = Callable[[Manifest], None]
UseModel = Callable[[Path, Manifest], None]


class RefusedError(BundleError):
    """A published bundle that this process cannot serve, for the reason in the message. Trying again would not help."""


def parse_published(content: bytes, where: str) -> Pointer:
    """Return the pointer of the prefix `where`. Raises RefusedError if the content is not a pointer."""
    try:
        return parse_pointer(content, f"{where}/{POINTER}")
    except BundleError as error:
        raise RefusedError(str(error)) from error


def fetch(
    objects: Objects,
    version: str,
    folder: Path,
    local: Path | None,
    at_once: int,
    check: Check = lambda manifest: None,
    use_model: UseModel = lambda folder, manifest: None,
) -> None:
    """Fetch into an empty folder the files of a version that a function needs, and verify them.

    `at_once` is the maximum number of simultaneous requests.

    `check` receives the manifest before any other file is fetched, and can raise RefusedError. `use_model` is called
    as soon as the model's files are complete. If `local`, another bundle, has the same model files, they are linked.
    Raises RefusedError if the version is damaged, BundleError if the disk is too small, RemoteError if S3 does not
    answer.
    """
    where = f"{objects.url}/{BUNDLES}/{version[:12]}"
    manifest = _fetch_manifest(objects, version, folder, where)
    check(manifest)
    in_order = sorted(manifest.files.items(), key=lambda file: file[0] not in MODEL_FILES)  # the model first
    missing = {name: info for name, info in in_order if name != TRUNCATED}
    for name in _same_in(local, manifest):
        assert local is not None
        _link(folder / name, (local / name).resolve())
        del missing[name]
    needed, free = sum(info.bytes for info in missing.values()), shutil.disk_usage(folder).free
    if needed > free:
        found = f"{needed / 1e6:,.0f} MB to fetch, and {folder.parent} has room for {free / 1e6:,.0f}"
        raise BundleError(f"{where}: {found}; give the function more ephemeral storage, or set TMPDIR to a larger disk")
    left_of_model = {name for name in MODEL_FILES if name in missing}
    if not left_of_model:
        use_model(folder, manifest)
    try:
        with ThreadPoolExecutor(at_once) as pool:
            for name in _fetch_files(objects, f"{BUNDLES}/{version}", folder, missing, pool):
                if name in left_of_model:
                    left_of_model.remove(name)
                    if not left_of_model:
                        use_model(folder, manifest)
    except OSError as error:
        raise BundleError(f"{where}: {error.strerror} while writing to {folder.parent}; make room there") from error


def _fetch_manifest(objects: Objects, version: str, folder: Path, where: str) -> Manifest:
    answer = objects.read(f"{BUNDLES}/{version}/{MANIFEST}")
    assert answer is not None  # only a conditional request returns None
    if hashlib.sha256(answer.content).hexdigest() != version:
        raise RefusedError(f"{where}/{MANIFEST}: is damaged, its SHA-256 is not its folder's name; publish it again")
    (folder / MANIFEST).write_bytes(answer.content)
    try:
        manifest = parse_manifest(answer.content, f"{where}/{MANIFEST}")
    except BundleError as error:
        raise RefusedError(str(error)) from error
    for name in manifest.files:
        if not FILE_NAME.fullmatch(name) or name == MANIFEST:
            raise RefusedError(f"{where}/{MANIFEST}: lists {name!r}, expected the name of a file; publish it again")
    return manifest


def _same_in(local: Path | None, manifest: Manifest) -> list[str]:
    """Return the model files that a local bundle has with the same content."""
    if local is None or not (local / MANIFEST).is_file():
        return []
    try:
        files = read_manifest(local).files
    except BundleError:  # another release wrote it: fetch all files
        return []
    return [
        name
        for name in MODEL_FILES
        if name in manifest.files
        and files.get(name) == manifest.files[name]
        and (local / name).is_file()
        and (local / name).stat().st_size == files[name].bytes
    ]


def _link(path: Path, existing: Path) -> None:
    try:
        path.hardlink_to(existing)  # stays valid after the other bundle is removed
    except OSError:  # the file is on another disk, for example in an image, or belongs to another user
        path.symlink_to(existing)


def _fetch_files(
    objects: Objects, place: str, folder: Path, files: Mapping[str, FileInfo], pool: ThreadPoolExecutor
) -> Iterator[str]:
    """Fetch files in parts, several at once, compare their SHA-256, and yield the name of each finished file."""
    left = {name: len(range(0, info.bytes, PART)) for name, info in files.items()}  # parts that are still missing
    counting = Lock()

    def fetch_part(name: str, begin: int) -> str | None:
        """Fetch a part. After the last part of a file, check the file and return its name."""
        with (folder / name).open("r+b") as file:
            objects.copy_part(f"{place}/{name}", begin, min(PART, files[name].bytes - begin), file.fileno())
        with counting:
            left[name] -= 1
            is_last = not left[name]
        if is_last:
            _check(objects, folder / name, files[name])
        return name if is_last else None

    for name, info in files.items():
        with (folder / name).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, info.bytes)
    parts = [(name, begin) for name, info in files.items() for begin in range(0, info.bytes, PART)]
    try:
        for done in as_completed([pool.submit(fetch_part, *each) for each in parts]):
            if (finished := done.result()) is not None:
                yield finished
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise


def _check(objects: Objects, path: Path, info: FileInfo) -> None:
    # hashing the whole file in one call releases the interpreter lock, so other threads run meanwhile
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        found = hashlib.sha256(content).hexdigest()
    if found != info.sha256:
        expected = f"the manifest says {info.sha256[:12]}"
        wrong = f"{path.name} is damaged: SHA-256 {found[:12]}, {expected}"
        raise RefusedError(f"{objects.url}: {wrong}; delete the object and publish again")
