"""Send vectors to an index of Amazon S3 Vectors, as many in a call and in a second as it takes.

boto3 repeats calls that the service was too busy for. The limits are those of https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from export.progress import OnProgress
from export.publishing.vectors import BundleVectors, Vector
from function.engine.bundle import VectorsInfo

MOST_VECTORS, MOST_BYTES = 500, 20 * 1024 * 1024  # of one PutVectors
OF_THE_CALL = 1024  # bytes of it beside the vectors
VECTORS_PER_SECOND = 2_500  # that an index takes
SENDERS = 4  # calls at the same time; one alone waits for most of a second
STEP = "send vectors"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a publish did."""

    info: VectorsInfo
    sent: int
    there: int  # rows that an earlier publish sent
    calls: int
    repeated: int  # calls that boto3 sent again


def send_rows(
    client: Any, info: VectorsInfo, rows: BundleVectors, there: set[int], on_progress: OnProgress, pace: "Pace"
) -> Sent:
    """Send the rows of a bundle that are not there yet. Raises what boto3 raises."""
    missing = [row for row in range(rows.rows) if row not in there]
    calls = repeated = sent = 0
    on_progress(STEP, len(there) / rows.rows)

    def end(number: int, call: "Future[Any]") -> None:
        nonlocal calls, repeated, sent
        repeated += call.result()["ResponseMetadata"]["RetryAttempts"]
        calls, sent = calls + 1, sent + number
        on_progress(STEP, (len(there) + sent) / rows.rows, sent)

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
    on_progress(STEP, 1, sent)
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
