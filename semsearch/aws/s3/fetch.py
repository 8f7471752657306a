"""Fetch the files of a published bundle into a local folder, and verify them before anything reads them.

`without_rows` leaves out the rows that were removed after it was published.
"""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from semsearch.aws.s3.objects import Objects, RemoteError
from semsearch.aws.s3.published import BUNDLES
from semsearch.engine.bundle import (
    MANIFEST,
    MODEL,
    TOKENIZER,
    TRUNCATED,
    BundleError,
    FileInfo,
    Manifest,
    ModelInfo,
    parse_manifest,
    read_manifest,
)
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, LoadedBundle, require_texts

PART_BYTES = 8 * 1024 * 1024  # bytes that one request fetches
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # no path, and nothing that a URL or a folder changes
MODEL_FILES = (MODEL, TOKENIZER)  # linked instead of fetched if a local bundle has the same

OpenModel = Callable[[Path, ModelInfo], Embedder]


def fetch(
    objects: Objects, version: str, folder: Path, local: Path, at_once: int, open_model: OpenModel | None = None
) -> Embedder | None:
    """Fetch into an empty folder the files of a version that a function needs, and verify them.

    `at_once` is the maximum number of simultaneous requests. If `local`, another bundle, has the same model files, they
    are linked. The model is fetched first, and opened with `open_model` while the rest is fetched; the result is what
    that returns, None for a bundle without a model.
    Raises BundleError if the version is damaged, RemoteError if S3 does not answer or the disk is full.
    """
    where = f"{objects.url}/{BUNDLES}/{version[:12]}"
    manifest = _fetch_manifest(objects, version, folder, where)
    if not manifest.has_model:
        open_model = None
    linked = _link_model(local, manifest, folder)
    in_order = sorted(manifest.files.items(), key=lambda file: file[0] not in MODEL_FILES)  # the model first
    missing = {name: info for name, info in in_order if name not in (TRUNCATED, *linked)}

    def fetch_part(name: str, begin: int) -> None:
        with (folder / name).open("r+b") as file:
            length = min(PART_BYTES, missing[name].bytes - begin)
            objects.copy_part(f"{BUNDLES}/{version}/{name}", begin, length, file.fileno())

    pool, opening = ThreadPoolExecutor(at_once), None
    try:
        if shutil.disk_usage(folder).free < sum(info.bytes for info in missing.values()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # at once, before anything is fetched
        for name in missing:
            (folder / name).touch()
        parts = {
            name: [pool.submit(fetch_part, name, begin) for begin in range(0, info.bytes, PART_BYTES)]
            for name, info in missing.items()
        }
        if open_model is not None:
            import tokenizers.models  # noqa: F401  while the files are fetched
        for name, info in missing.items():
            if name not in MODEL_FILES and opening is None and open_model is not None and manifest.queries is None:
                opening = pool.submit(open_model, folder, manifest.model)
            for part in parts[name]:
                part.result()
            _check(objects, folder / name, info)
        if opening is None:
            return None
        return opening.result()
    except OSError as error:
        raise RemoteError(f"{where}: {error.strerror} while writing to {folder.parent}; make room there") from error
    finally:
        pool.shutdown(cancel_futures=True)


def without_rows(bundle: AnyBundle, rows: Sequence[int]) -> LoadedBundle:
    """Return the bundle without some rows, which no search finds or counts, with the parts that are open already.

    Raises BundleError if the bundle does not have all of them, or if its texts are in S3 Vectors.
    """
    texts = require_texts(bundle)
    count = len(texts.passages)
    if max(rows) >= count:
        raise BundleError(f"{bundle.folder}: row {max(rows)} was removed, expected one of {count} rows; publish again")
    allowed = np.ones(count, np.bool_)
    allowed[list(rows)] = False
    return texts.among(allowed)


def _fetch_manifest(objects: Objects, version: str, folder: Path, where: str) -> Manifest:
    content, stored = objects.read_dated(f"{BUNDLES}/{version}/{MANIFEST}")
    if hashlib.sha256(content).hexdigest() != version:
        raise BundleError(f"{where}/{MANIFEST}: is damaged, its SHA-256 is not its folder's name; publish it again")
    (folder / MANIFEST).write_bytes(content)
    os.utime(folder / MANIFEST, (stored, stored))  # replies state when the index was made
    manifest = parse_manifest(content, f"{where}/{MANIFEST}")
    for name in manifest.files:
        if not FILE_NAME.fullmatch(name) or name == MANIFEST:
            raise BundleError(f"{where}/{MANIFEST}: lists {name!r}, expected the name of a file; publish it again")
    return manifest


def _link_model(local: Path, manifest: Manifest, folder: Path) -> list[str]:
    """Link the model files that a local bundle has with the same content into a folder, and return their names."""
    try:
        files = read_manifest(local).files
    except BundleError:  # there is none, or another release wrote it: fetch all files
        return []
    linked = []
    for name in MODEL_FILES:
        existing = (local / name).resolve()
        if name in manifest.files and files.get(name) == manifest.files[name] and existing.is_file():
            try:
                (folder / name).hardlink_to(existing)  # stays valid after the other bundle is removed
            except OSError:  # the file is on another disk, for example in an image, or belongs to another user
                (folder / name).symlink_to(existing)
            linked.append(name)
    return linked


def _check(objects: Objects, path: Path, info: FileInfo) -> None:
    # hashing the whole file in one call releases the interpreter lock, so other threads run meanwhile
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        found = hashlib.sha256(content).hexdigest()
    if found != info.sha256:
        expected = f"the manifest says {info.sha256[:12]}"
        wrong = f"{path.name} is damaged: SHA-256 {found[:12]}, {expected}"
        raise BundleError(f"{objects.url}: {wrong}; delete the object and publish again")
