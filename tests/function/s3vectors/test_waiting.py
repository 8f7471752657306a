"""A server with many callers waits for S3 Vectors in threads, so that nobody waits for another's answer."""

import asyncio
from threading import Barrier

from function.engine.embedder import Embedder
from function.server.batching import BatchingExecutor


class NoCounts:
    def count_batch(self, texts: int, tokens: int) -> None: ...

    def set_queued(self, tokens: int) -> None: ...


async def test_two_callers_wait_at_the_same_time(embedder: Embedder) -> None:
    executor = BatchingExecutor(embedder, 1, 100, 100, NoCounts())
    both = Barrier(2, timeout=30)  # broken unless two threads wait at it
    assert sorted(await asyncio.gather(executor.wait(both.wait), executor.wait(both.wait))) == [0, 1]
