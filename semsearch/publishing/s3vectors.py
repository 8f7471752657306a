"""Publish a bundle to Amazon S3 Vectors: its rows become vectors there, and a small bundle says where they are.

The key of a vector names its bundle and its row. So after an interruption only the missing vectors are sent, and an
index with the vectors of another bundle is refused.
"""

import json
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from botocore.exceptions import BotoCoreError, ClientError

from semsearch.aws.s3vectors.vectors import (
    EMPTY,
    ID_KEY,
    LARGEST_NUMBER,
    METADATA_KEY,
    NOT_FILTERED,
    TEXT_KEY,
    key_of,
    metadata_value,
    row_of,
)
from semsearch.engine.bundle import (
    COLUMNS,
    INDEX,
    MODEL,
    PASSAGES,
    QUERY_TABLE,
    TOKENIZER,
    BundleError,
    Manifest,
    VectorsInfo,
    check_bundle,
)
from semsearch.engine.metadata.columns import LIST_TYPES
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import dequantize
from semsearch.engine.semantic.index import Index
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.facts import stored_values
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.replacing import replacing
from semsearch.indexing.vectors.embed import group
from semsearch.publishing.bucket import PublishError

MOST_DIMENSIONS = 4_096
MOST_METADATA_KEYS = 50  # maximum metadata keys of a vector
MOST_METADATA_BYTES, MOST_FILTERABLE_BYTES = 40 * 1024, 2 * 1024  # maximum bytes of a vector's metadata
LONGEST_KEY = 63  # maximum characters of a metadata key
CHECKED_ROWS = 4_096  # rows that are checked between two reports of progress
DIGITS = 16  # hexadecimal digits of the SHA-256 that all keys of a bundle begin with

NewVector = dict[str, Any]


class BundleVectors:
    """The rows of a bundle as vectors of the service; each is read when it is used."""

    def __init__(self, bundle: Path, manifest: Manifest) -> None:
        """Open the files. Raises TensorsError if they are damaged."""
        self.rows: int = manifest.corpus.rows
        self.dim: int = manifest.model.dim
        self.kinds: Mapping[str, str] = manifest.corpus.columns
        parts = [manifest.files[name].sha256 for name in (INDEX, PASSAGES, COLUMNS) if name in manifest.files]
        self.keys: str = sha256("".join(parts).encode()).hexdigest()[:DIGITS]
        self._bundle = bundle
        self._index = Index.open(bundle / INDEX, manifest.corpus.stages)
        self._passages = Passages(bundle / PASSAGES)

    def vectors(self, rows: list[int]) -> Iterator[NewVector]:
        """Yield the vectors of some rows, as PutVectors takes them."""
        embeddings = dequantize(*self._index.codes_of(np.array(rows, np.intp)))
        for row, embedding in zip(rows, embeddings.tolist(), strict=True):
            filterable, shown = self._metadata(row)
            yield {"key": key_of(self.keys, row), "data": {"float32": embedding}, "metadata": filterable | shown}

    def check(self) -> Iterator[float]:
        """Check every row, and yield the share that is done. Raises BundleError, which names the row."""
        self._check_columns()
        for begin in range(0, self.rows, CHECKED_ROWS):
            rows = np.arange(begin, min(begin + CHECKED_ROWS, self.rows))
            zeros = np.flatnonzero(self._index.codes_of(rows)[1] == 0)
            if len(zeros):
                self._refuse(begin + int(zeros[0]), "its embedding is all zeros", "S3 Vectors takes none; leave it out")
            for row in rows.tolist():
                self._check_row(row)
            yield (begin + len(rows)) / self.rows

    def _check_columns(self) -> None:
        if self.dim > MOST_DIMENSIONS:
            raise BundleError(f"{self._bundle}: {self.dim} dimensions, S3 Vectors takes at most {MOST_DIMENSIONS}")
        most = MOST_METADATA_KEYS - len(NOT_FILTERED) - 1
        advice = "index the texts again with --column NAME=none"
        if len(self.kinds) > most:
            raise BundleError(f"{self._bundle}: {len(self.kinds)} columns, expected at most {most}; {advice}")
        for name in self.kinds:
            if name in (*NOT_FILTERED, EMPTY) or name.startswith("$") or len(name) > LONGEST_KEY:
                expected = f"at most {LONGEST_KEY} characters, no $ at its beginning, and no name that is in use"
                raise BundleError(f"{self._bundle}: the column {name!r}, expected {expected}; {advice}")

    def _check_row(self, row: int) -> None:
        filterable, shown = self._metadata(row)
        for name, value in filterable.items():
            if largest_number(value) > LARGEST_NUMBER:
                self._refuse(row, f"{name} is {value}", f"numbers up to {LARGEST_NUMBER}; use --column {name}=string")
        found, total = _json_bytes(filterable), _json_bytes(filterable | shown)
        if found > MOST_FILTERABLE_BYTES:
            advice = "leave long columns out of filters with --column NAME=none"
            self._refuse(row, f"{found} bytes of columns for filters", f"at most {MOST_FILTERABLE_BYTES}; {advice}")
        if total > MOST_METADATA_BYTES:
            advice = "split long texts into several rows"
            self._refuse(row, f"{total} bytes of text and metadata", f"at most {MOST_METADATA_BYTES}; {advice}")

    def _refuse(self, row: int, found: str, expected: str) -> None:
        raise BundleError(f"{self._bundle}: row {row} (id {self._passages.id(row)}): {found}, expected {expected}")

    def _metadata(self, row: int) -> tuple[NewVector, NewVector]:
        passage = self._passages[row]
        shown = {TEXT_KEY: passage.text, ID_KEY: passage.id}
        if passage.metadata:
            shown[METADATA_KEY] = json.dumps(passage.metadata, ensure_ascii=False)
        return filterable_metadata(passage.metadata, self.kinds), shown


def largest_number(value: object) -> float:
    """Return the largest magnitude of the numbers of a value, 0 if it has none."""
    values = value if isinstance(value, list) else [value]
    return max((abs(each) for each in values if isinstance(each, int | float)), default=0)


def filterable_metadata(metadata: Mapping[str, Any], kinds: Mapping[str, str]) -> NewVector:
    """Return the part of a row's metadata that filters compare, typed; EMPTY names the columns with an empty list."""
    found: NewVector = {}
    for name, kind in kinds.items():
        if name not in metadata:
            continue
        stored = stored_values(kind, metadata[name])
        assert stored is not None  # `semsearch index` checked it
        values = [metadata_value(kind, value) for value in stored]
        if kind not in LIST_TYPES:
            (found[name],) = values
        elif values:
            found[name] = values
        else:
            found.setdefault(EMPTY, []).append(name)
    return found


def _json_bytes(metadata: NewVector) -> int:
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


MOST_VECTORS, MOST_BYTES = 500, 20 * 1024 * 1024  # limits of one PutVectors
OTHER_BYTES = 1024  # bytes of a PutVectors besides its vectors
SENDERS = 4  # concurrent calls, because a call mostly waits
STEP = "send vectors"


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of `publish`."""

    info: VectorsInfo
    sent: int
    there: int  # rows that the index had before


def _send_rows(client: Any, info: VectorsInfo, rows: BundleVectors, there: set[int], on_progress: OnProgress) -> Sent:
    """Send the rows of a bundle that the index lacks. Raises what boto3 raises."""
    missing = [row for row in range(rows.rows) if row not in there]
    pieces = (missing[begin : begin + MOST_VECTORS] for begin in range(0, len(missing), MOST_VECTORS))
    running: deque[Future[int]] = deque()
    sent = 0

    def send(batch: list[NewVector]) -> int:
        client.put_vectors(vectorBucketName=info.bucket, indexName=info.index, vectors=batch)
        return len(batch)

    def wait_for_first() -> None:
        nonlocal sent
        sent += running.popleft().result()
        on_progress(STEP, (len(there) + sent) / rows.rows, sent)

    with ThreadPoolExecutor(SENDERS, STEP) as senders:
        try:
            for batch in batches(chain.from_iterable(map(rows.vectors, pieces))):
                if len(running) == SENDERS:
                    wait_for_first()
                running.append(senders.submit(send, batch))
            while running:
                wait_for_first()
        except BaseException:
            senders.shutdown(cancel_futures=True)
            raise
    on_progress(STEP, 1, sent)
    return Sent(info, sent, len(there))


def batches(vectors: Iterable[NewVector], most_bytes: int = MOST_BYTES) -> Iterator[list[NewVector]]:
    """Yield the vectors in lists for one PutVectors each, by the limits on their number and on the bytes sent."""
    separator = 2  # bytes: a comma and a space
    return group(vectors, MOST_VECTORS, most_bytes - OTHER_BYTES, lambda vector: len(json.dumps(vector)) + separator)


def publish(
    bundle: Path,
    place: str,
    out: Path,
    client: Any,
    on_progress: OnProgress,
) -> Sent:
    """Send the rows of a bundle to the index BUCKET/INDEX, and write the bundle that a function serves them with.

    The index is created if it does not exist. All rows are checked before any is sent.
    Raises BundleError or TensorsError if the bundle or a row cannot be sent, PublishError if S3 Vectors refuses.
    """
    bucket, slash, name = place.partition("/")
    if not (bucket and slash and name) or "/" in name:
        raise PublishError(f"--to s3vectors: found {place!r}, expected BUCKET/INDEX")
    manifest = check_bundle(bundle)
    if manifest.corpus.vectors is not None:
        raise BundleError(f"{bundle}: its texts are in S3 Vectors already; name the bundle that was published there")
    if out.resolve() == bundle.resolve():
        raise PublishError(f"--out: {out} is the bundle itself, which keeps the texts; name another folder")
    if (out / PASSAGES).exists():
        raise PublishError(f"--out: {out} is a bundle with texts, which would be deleted; name another folder")
    rows = BundleVectors(bundle, manifest)
    for share in rows.check():
        on_progress("check rows", share)
    info = VectorsInfo(bucket, name, client.meta.region_name, rows.keys)
    try:
        _make_index(client, info, rows.dim)
        there = _rows_there(client, info, rows.rows, on_progress)
        sent = _send_rows(client, info, rows, there, on_progress)
    except (BotoCoreError, ClientError) as error:
        hint = ""
        if "NotFound" in str(error):
            hint = f"; make the bucket: aws s3vectors create-vector-bucket --vector-bucket-name {bucket}"
        raise PublishError(
            f"S3 Vectors {place}: {' '.join(str(error).split())}{hint}; run the command again to send what is missing"
        ) from error
    _write_bundle(bundle, out, manifest, info)
    return sent


def _write_bundle(bundle: Path, out: Path, manifest: Manifest, info: VectorsInfo) -> None:
    files = {name: manifest.files[name] for name in (MODEL, TOKENIZER, QUERY_TABLE) if name in manifest.files}
    index = replace(manifest.corpus, stages=None, recall={}, keywords=None, boost={}, vectors=info)
    with replacing(out) as fresh:
        for name in files:
            shutil.copyfile(bundle / name, fresh / name)
        write_manifest(fresh, replace(manifest, corpus_or_none=index, files=files, rerank=None))


def _make_index(client: Any, info: VectorsInfo, dim: int) -> None:
    """Create the index unless it exists. Raises PublishError if it exists with another configuration."""
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
        raise PublishError(f"S3 Vectors {place}: is of {shown}, expected {expected}; name a new index")


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
