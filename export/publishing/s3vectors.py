"""Publish a bundle to Amazon S3 Vectors: its rows become vectors there, and a small bundle says where they are.

The small bundle can keep the texts, columns and keywords, so that only the vectors are in the service.

The key of a vector names its bundle and its row. So a publish that was stopped sends only the missing vectors, and an
index with the vectors of another bundle is refused.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from export.files.replace import replacing
from export.index.indexer import write_manifest
from export.progress import OnProgress
from export.publishing.client import PublishError
from export.publishing.sending import VECTORS_PER_SECOND, Pace, Sent, send_rows
from export.publishing.vectors import BundleVectors
from function.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    Manifest,
    VectorsInfo,
    open_bundle,
    read_manifest,
)
from function.engine.semantic.s3_vectors import NOT_FILTERED, row_of


def publish(
    bundle: Path,
    place: str,
    out: Path,
    client: Any,
    on_progress: OnProgress,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    keeps_texts: bool = False,
) -> Sent:
    """Send the rows of a bundle to the index BUCKET/INDEX, and write the bundle that a function serves them with.

    The index is created if it does not exist. Every row is checked before anything is sent. With keeps_texts, no texts
    are sent; texts, columns and keywords are written into the small bundle.
    Raises BundleError or TensorsError if the bundle or a row cannot be sent, PublishError if S3 Vectors refuses.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, slash, name = place.partition("/")
    if not (bucket and slash and name) or "/" in name:
        raise PublishError(f"--to s3vectors: found {place!r}, expected BUCKET/INDEX")
    manifest = open_bundle(bundle)
    assert manifest.index is not None  # open_bundle checked it
    if manifest.index.vectors is not None:
        raise BundleError(f"{bundle}: its texts are in S3 Vectors already; name the bundle that was published there")
    if out.resolve() == bundle.resolve():
        raise PublishError(f"--out: {out} is the bundle itself, which keeps the texts; name another folder")
    if (out / INDEX).exists() or ((out / PASSAGES).exists() and not _has_copies(out)):
        raise PublishError(f"--out: {out} is a bundle with texts, which would be deleted; name another folder")
    rows = BundleVectors(bundle, manifest, keeps_texts)
    for share in rows.check():
        on_progress("check rows", share)
    info = VectorsInfo(bucket, name, client.meta.region_name, rows.keys, keeps_texts)
    try:
        _make_index(client, info, rows.dim)
        there = _rows_there(client, info, rows.rows, on_progress)
        sent = send_rows(client, info, rows, there, on_progress, Pace(VECTORS_PER_SECOND, clock, sleep))
    except (BotoCoreError, ClientError) as error:
        advice = "; make the bucket: aws s3vectors create-vector-bucket --vector-bucket-name " + bucket
        hint = advice if "NotFound" in str(error) else ""
        raise PublishError(
            f"S3 Vectors {place}: {' '.join(str(error).split())}{hint}; run the command again to send what is missing"
        ) from error
    _write_bundle(bundle, out, manifest, info)
    return sent


def _has_copies(out: Path) -> bool:
    """Return whether a bundle has texts that an earlier publish copied from another one."""
    try:
        index = read_manifest(out).index
    except BundleError:
        return False
    return index is not None and index.vectors is not None


def _write_bundle(bundle: Path, out: Path, manifest: Manifest, info: VectorsInfo) -> None:
    """Write the bundle that a function serves: the model, where the vectors are, and the texts if it keeps them."""
    assert manifest.index is not None
    kept = (PASSAGES, COLUMNS, KEYWORDS) if info.keeps_texts else ()
    files = {name: manifest.files[name] for name in (MODEL, TOKENIZER, *kept) if name in manifest.files}
    keywords = manifest.index.keywords if info.keeps_texts else None
    index = replace(manifest.index, stages=None, recall={}, keywords=keywords, vectors=info)
    with replacing(out) as fresh:
        for name in files:
            shutil.copyfile(bundle / name, fresh / name)
        write_manifest(fresh, replace(manifest, index=index, files=files, rerank=None))


def _make_index(client: Any, info: VectorsInfo, dim: int) -> None:
    """Make the index, unless it exists. Raises PublishError if it exists with another configuration."""
    where = {"vectorBucketName": info.bucket, "indexName": info.index}
    kind = {"dataType": "float32", "dimension": dim, "distanceMetric": "cosine"}
    not_filtered = {"metadataConfiguration": {"nonFilterableMetadataKeys": list(NOT_FILTERED)}}
    try:
        found = client.get_index(**where)["index"]
    except client.exceptions.NotFoundException:
        client.create_index(**where, **kind, **not_filtered)
        return
    found_kind = {name: found.get(name) for name in kind}
    keys = found.get("metadataConfiguration", {}).get("nonFilterableMetadataKeys", [])
    if found_kind != kind or set(keys) != set(NOT_FILTERED):
        shown, expected = f"{found_kind}, not filtered: {keys}", f"{kind}, not filtered: {list(NOT_FILTERED)}"
        place = f"{info.bucket}/{info.index}"
        raise PublishError(
            f"S3 Vectors {place}: is of {shown}, expected {expected}; name an index that is not there yet"
        )


def _rows_there(client: Any, info: VectorsInfo, rows: int, on_progress: OnProgress) -> set[int]:
    """Return the rows that the index has. Raises PublishError if it has vectors of another bundle."""
    there: set[int] = set()
    step = "list vectors"
    on_progress(step, 0)
    pages = client.get_paginator("list_vectors").paginate(vectorBucketName=info.bucket, indexName=info.index)
    for page in pages:
        for vector in page["vectors"]:
            try:
                there.add(row_of(info.keys, vector["key"]))
            except ValueError:
                raise PublishError(
                    f"S3 Vectors {info.bucket}/{info.index}: holds vectors of another bundle, such as "
                    f"{vector['key']!r}; name an index that is not there yet, and delete the old one when no function "
                    "asks it any more"
                ) from None
        on_progress(step, min(len(there) / rows, 0.99))
    on_progress(step, 1)
    return there
