"""Many requests at once: their texts share batches, which run in threads while the event loop goes on.

The texts of a batch have equally many tokens, as in `Embedder.embed`, so a text has the same embedding, to the last
bit, whatever else is asked at the same time. Requests take turns. A turn is one batch: texts of the request whose turn
it is, and of the others as many of the same length as fit. So a request with hundreds of texts is split, and one that
comes after it waits for one batch of it instead of all.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Protocol, TypeVar

import numpy as np
from starlette.exceptions import HTTPException

from function.engine.embedder import Embedder, TokenIds
from function.engine.quantization import Embeddings

Result = TypeVar("Result")

FEW_CHARACTERS = 4_000  # tokenized in about a millisecond; more are tokenized in a thread
RETRY_AFTER = "1"  # seconds


class BatchCounts(Protocol):
    """What counts batches and the queue, such as function/metrics.py."""

    def count_batch(self, texts: int, tokens: int) -> None:
        """Count a batch."""

    def set_queued(self, tokens: int) -> None:
        """Remember how many tokens wait."""


class QueueFull(HTTPException):
    """The queue takes no more tokens: a 429 that says when to come again."""

    def __init__(self, found: int, most: int) -> None:
        """Say how many tokens would wait, and how many may."""
        detail = f"{found} tokens would wait for the model, at most {most} may; try again in {RETRY_AFTER} s"
        super().__init__(429, detail, {"retry-after": RETRY_AFTER})


class _Request:
    """Texts that one caller waits for. Everything is changed in the event loop's thread alone."""

    __slots__ = ("done", "embeddings", "missing", "tokens", "unstarted")

    def __init__(self, tokens: Sequence[TokenIds], dim: int, done: "asyncio.Future[Embeddings]") -> None:
        self.tokens = tokens
        self.done = done
        self.embeddings: Embeddings = np.empty((len(tokens), dim), np.float32)
        self.missing = len(tokens)
        self.unstarted: dict[int, list[int]] = {}  # rows by their number of tokens
        for row in sorted(range(len(tokens)), key=lambda row: len(tokens[row].ids)):
            self.unstarted.setdefault(len(tokens[row].ids), []).append(row)


_Batch = list[tuple[_Request, int]]  # requests, and the rows of their texts


class BatchedExecution:
    """Embeds the texts of many requests together, in `threads` threads, and searches large corpora in threads too."""

    def __init__(
        self,
        embedder: Embedder,
        threads: int,
        max_queued_tokens: int,
        tokens_per_batch: int,
        counts: BatchCounts,
    ) -> None:
        """Take an open model, how many threads have it, and how many tokens may wait for one.

        A request with more tokens than that is accepted while nothing waits. A batch has at most tokens_per_batch, or
        one text.
        """
        self._embedder = embedder
        self._max_queued_tokens = max_queued_tokens
        self._tokens_per_batch = tokens_per_batch
        self._counts = counts
        self._model_threads = ThreadPoolExecutor(threads, "model")
        self._other_threads = ThreadPoolExecutor(threads, "search")
        self._idle = threads
        self._waiting: dict[_Request, None] = {}  # that have texts in no batch yet; the first one's turn is next
        self.queued_tokens = 0  # of these texts
        self.embedded_at = monotonic()  # load has just embedded a text

    async def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        """Return what Embedder.tokenize returns."""
        if sum(map(len, texts)) <= FEW_CHARACTERS:
            return self._embedder.tokenize(texts, role)
        return await self._in_thread(lambda: self._embedder.tokenize(texts, role))

    async def run(self, work: Callable[[], Result], *, is_long: bool = False) -> Result:
        """Return what `work` returns."""
        return await self._in_thread(work) if is_long else work()

    async def wait(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns; many may wait at the same time."""
        return await asyncio.to_thread(work)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        """Return what Embedder.embed returns, (n, dim) float32; whoever stops waiting frees the place in the queue.

        Raises QueueFull if other texts wait and these are too many with them, unless it is a check of the model.
        """
        count = sum(len(text.ids) for text in tokens)
        if self._waiting and self.queued_tokens + count > self._max_queued_tokens and not is_check:
            raise QueueFull(self.queued_tokens + count, self._max_queued_tokens)
        request = _Request(tokens, self._embedder.model.dim, asyncio.get_running_loop().create_future())
        self._waiting[request] = None
        self.queued_tokens += count
        try:
            self._start_batches()
            return await request.done
        finally:
            if request in self._waiting:  # the caller was cancelled, or a batch of it failed
                del self._waiting[request]
                self.queued_tokens -= sum(length * len(rows) for length, rows in request.unstarted.items())
                self._counts.set_queued(self.queued_tokens)

    def _start_batches(self) -> None:
        """Start a batch in every idle thread, as long as texts wait."""
        while self._idle and self._waiting:
            batch = self._take_batch()
            ids = [request.tokens[row].ids for request, row in batch]
            self._counts.count_batch(len(ids), len(ids) * len(ids[0]))
            running = asyncio.get_running_loop().run_in_executor(self._model_threads, self._embedder.embed_padded, ids)
            self._idle -= 1
            running.add_done_callback(partial(self._end_batch, batch))
        self._counts.set_queued(self.queued_tokens)

    def _take_batch(self) -> _Batch:
        """Take the next batch out of the queue, and let the request whose turn it was wait behind the others."""
        first = next(iter(self._waiting))
        length = next(reversed(first.unstarted))
        room = max(1, self._tokens_per_batch // length)
        batch: _Batch = []
        for request in list(self._waiting):
            rows = request.unstarted.get(length)
            if not rows:
                continue
            taken = rows[-room:]
            del rows[-room:]
            batch += [(request, row) for row in taken]
            if not rows:
                del request.unstarted[length]
            if not request.unstarted:
                del self._waiting[request]
            room -= len(taken)
            if not room:
                break
        if first in self._waiting:
            del self._waiting[first]
            self._waiting[first] = None
        self.queued_tokens -= length * len(batch)
        return batch

    def _end_batch(self, batch: _Batch, running: "asyncio.Future[Embeddings]") -> None:
        """Start the next batch, and hand out the embeddings of this one, or what went wrong with it."""
        self._idle += 1
        self._start_batches()
        error = running.exception()
        if error is None:
            self.embedded_at = monotonic()
        for place, (request, row) in enumerate(batch):
            if request.done.done():  # nobody waits for it any more
                continue
            if error is not None:
                request.done.set_exception(error)
                continue
            request.embeddings[row] = running.result()[place]
            request.missing -= 1
            if not request.missing:
                request.done.set_result(request.embeddings)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._other_threads, work)

    def close(self) -> None:
        """End the threads, after what they are doing."""
        self._model_threads.shutdown()
        self._other_threads.shutdown()
