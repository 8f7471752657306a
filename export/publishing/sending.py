"""Send vectors to an index of Amazon S3 Vectors, within its limits for a call and for a second.

boto3 repeats calls that the service was too busy for. The limits are those of
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

from export.index.embed import group
from export.progress import OnProgress
from export.publishing.vectors import BundleVectors, Vector
from function.engine.bundle import VectorsInfo

MOST_VECTORS, MOST_BYTES = 500, 20 * 1024 * 1024  # limits of one PutVectors
OTHER_BYTES = 1024  # bytes of a PutVectors that are not vectors
VECTORS_PER_SECOND = 2_500  # limit of an index
SENDERS = 4  # concurrent calls; a single one would wait for most of the time
STEP = "send vectors"


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a publish."""

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
    pieces = (missing[begin : begin + MOST_VECTORS] for begin in range(0, len(missing), MOST_VECTORS))
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
            for batch in batches(chain.from_iterable(map(rows.vectors, pieces))):
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


def batches(vectors: Iterable[Vector], most_bytes: int = MOST_BYTES) -> Iterator[list[Vector]]:
    """Return the vectors in lists that one PutVectors takes, by their number and by the bytes that boto3 sends."""
    separator = 2  # bytes: a comma and a space
    return group(vectors, MOST_VECTORS, most_bytes - OTHER_BYTES, lambda vector: len(json.dumps(vector)) + separator)


class Pace:
    """Limits the number of vectors that are sent in a second."""

    def __init__(self, per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        """Take a clock that counts seconds, and a function that waits for some."""
        self._per_second, self._clock, self._sleep = per_second, clock, sleep
        self._free = clock()

    def take(self, count: int) -> None:
        """Wait until `count` more vectors are allowed."""
        now = self._clock()
        if self._free > now:
            self._sleep(self._free - now)
        self._free = max(self._free, now) + count / self._per_second
