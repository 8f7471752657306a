"""Publish a bundle to Amazon S3 Vectors: its rows become vectors there, and a small bundle says where they are.

The keys of the vectors say which bundle and which row they are of. So a publish that was stopped sends only what is not
there yet, and an index with the vectors of another bundle is refused. boto3 repeats
calls that the service was too busy for.
"""

import argparse
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from export.indexer import write_manifest
from export.progress import ShowProgress, showing_progress
from export.replace import replacing
from export.vectors import BundleVectors, Vector
from function.engine.bundle import MODEL, TOKENIZER, BundleError, Manifest, VectorsInfo, open_bundle
from function.engine.vectors import NOT_FILTERED, row_of

MOST_VECTORS, MOST_BYTES = 500, 20 * 1024 * 1024  # of one PutVectors
OF_THE_CALL = 1024  # bytes of it beside the vectors
VECTORS_PER_SECOND = 2_500  # that an index takes
SENDERS = 4  # calls at the same time; one alone waits for most of a second
ATTEMPTS = 10  # of each call, with growing pauses: boto3's own
STEP = "send vectors"


class PublishError(ValueError):
    """A bundle that cannot be published: the message says where, what was found and what to do."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a publish did."""

    info: VectorsInfo
    sent: int
    there: int  # rows that an earlier publish sent
    calls: int
    repeated: int  # calls that boto3 sent again


def publish_command(options: argparse.Namespace, console: Console) -> int:
    """Run `python -m export publish --to s3vectors`, print what it did and return 0. Raises what `publish` does."""
    from export.shell import python_module

    with showing_progress(console) as progress:
        sent = publish(options.bundle, options.to[1], options.out, connect(options.endpoint), progress)
    place = f"{sent.info.bucket}/{sent.info.index} in {sent.info.region}"
    calls = f"{sent.calls:,} calls, {sent.repeated:,} of them repeated"
    console.print(f"{place}: {sent.sent:,} vectors sent, {sent.there:,} were there; {calls}", markup=False)
    console.print(
        f"{options.out}/ is ready. Try it: {python_module('function', '--bundle', options.out)}", markup=False
    )
    return 0


def connect(endpoint: str | None = None) -> Any:
    """Return boto3's client, with the user's profile and region. Raises PublishError without boto3 or a region."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise PublishError("boto3 is not installed; run `pip install 'semantic-search-lambda[publish]'`") from None
    retries: Any = {"mode": "standard", "max_attempts": ATTEMPTS}
    try:
        return boto3.client("s3vectors", endpoint_url=endpoint, config=Config(retries=retries))
    except BotoCoreError as error:
        raise PublishError(f"AWS: {error}; set AWS_REGION or AWS_PROFILE") from error


def publish(
    bundle: Path,
    place: str,
    out: Path,
    client: Any,
    progress: ShowProgress,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send the rows of a bundle to the index BUCKET/INDEX, and write the bundle that a function serves them with.

    The index is made if it is not there. Every row is checked before anything is sent.
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
    rows = BundleVectors(bundle, manifest)
    for share in rows.check():
        progress("check rows", share)
    info = VectorsInfo(bucket, name, client.meta.region_name, rows.keys)
    try:
        _make_index(client, info, rows.dim)
        there = _rows_there(client, info, rows.rows, progress)
        sent = _send_all(client, info, rows, there, progress, Pace(VECTORS_PER_SECOND, clock, sleep))
    except (BotoCoreError, ClientError) as error:
        advice = "; make the bucket: aws s3vectors create-vector-bucket --vector-bucket-name " + bucket
        hint = advice if "NotFound" in str(error) else ""
        raise PublishError(
            f"S3 Vectors {place}: {' '.join(str(error).split())}{hint}; run the command again to send what is missing"
        ) from error
    _write_bundle(bundle, out, manifest, info)
    return sent


def _write_bundle(bundle: Path, out: Path, manifest: Manifest, info: VectorsInfo) -> None:
    """Write the bundle that a function serves: the model, and where the corpus is."""
    assert manifest.index is not None
    files = {name: manifest.files[name] for name in (MODEL, TOKENIZER)}
    index = replace(manifest.index, stages=None, recall=None, keywords=None, vectors=info)
    with replacing(out) as fresh:
        for name in files:
            shutil.copyfile(bundle / name, fresh / name)
        write_manifest(fresh, replace(manifest, index=index, files=files))


def _make_index(client: Any, info: VectorsInfo, dim: int) -> None:
    """Make the index, unless it is there. Raises PublishError if it is there and of another kind."""
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


def _rows_there(client: Any, info: VectorsInfo, rows: int, progress: ShowProgress) -> set[int]:
    """Return the rows that the index has. Raises PublishError if it has vectors of another bundle."""
    there: set[int] = set()
    step = "look what is there"
    progress(step, 0)
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
        progress(step, min(len(there) / rows, 0.99))
    progress(step, 1)
    return there


def _send_all(
    client: Any, info: VectorsInfo, rows: BundleVectors, there: set[int], progress: ShowProgress, pace: "Pace"
) -> Sent:
    missing = [row for row in range(rows.rows) if row not in there]
    calls = repeated = sent = 0
    progress(STEP, len(there) / rows.rows)

    def end(number: int, call: "Future[Any]") -> None:
        nonlocal calls, repeated, sent
        repeated += call.result()["ResponseMetadata"]["RetryAttempts"]
        calls, sent = calls + 1, sent + number
        progress(STEP, (len(there) + sent) / rows.rows, sent)

    with ThreadPoolExecutor(SENDERS, STEP) as senders:
        running: deque[tuple[int, Future[Any]]] = deque()
        try:
            for batch in batches(_read(rows, missing)):
                if len(running) == SENDERS:
                    end(*running.popleft())
                pace.take(len(batch))
                where = {"vectorBucketName": info.bucket, "indexName": info.index}
                running.append((len(batch), senders.submit(client.put_vectors, **where, vectors=batch)))
            while running:
                end(*running.popleft())
        except BaseException:
            senders.shutdown(cancel_futures=True)
            raise
    progress(STEP, 1, sent)
    return Sent(info, sent, len(there), calls, repeated)


def _read(rows: BundleVectors, missing: list[int]) -> Iterator[Vector]:
    for begin in range(0, len(missing), MOST_VECTORS):
        yield from rows.vectors(missing[begin : begin + MOST_VECTORS])


def batches(vectors: Iterable[Vector], most_bytes: int = MOST_BYTES) -> Iterator[list[Vector]]:
    """Yield the vectors in lists that one PutVectors takes, by their number and by the bytes that boto3 sends."""
    batch: list[Vector] = []
    room = most_bytes - OF_THE_CALL
    for vector in vectors:
        size = len(json.dumps(vector)) + 2  # a comma and a space
        if batch and (len(batch) == MOST_VECTORS or size > room):
            yield batch
            batch, room = [], most_bytes - OF_THE_CALL
        batch.append(vector)
        room -= size
    if batch:
        yield batch


class Pace:
    """Waits, so that no more than so many vectors are sent in a second."""

    def __init__(self, per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        """Take a clock that counts seconds, and what waits for some of them."""
        self._per_second, self._clock, self._sleep = per_second, clock, sleep
        self._free = clock()

    def take(self, count: int) -> None:
        """Wait until so many vectors may be sent."""
        now = self._clock()
        if self._free > now:
            self._sleep(self._free - now)
        self._free = max(self._free, now) + count / self._per_second
