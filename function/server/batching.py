"""Embed the texts of many requests together, and score their pairs, in model threads, while the event loop continues.

While enough texts for a batch wait, a model thread takes the next batch itself, because the event loop can be busy.
With fewer texts, the event loop starts the next batch, and texts that have arrived meanwhile join it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import ceil
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from function.engine.embedder import Embedder, TokenIds
from function.engine.quantization import Embeddings
from function.http import HttpError
from function.server.token_queue import Batch, Request, Results, RunBatch, TokenQueue

if TYPE_CHECKING:
    from function.engine.rerank.reranker import Logits, Reranker

Result = TypeVar("Result")

FEW_CHARACTERS = 4_000  # characters that are tokenized in about a millisecond; more are tokenized in a thread
OTHER_THREADS = 4  # with one, a search would wait while a bulk request is tokenized, and while its reply is written
LONGEST_RETRY = 60  # seconds; the largest Retry-After
NEWEST = 0.1  # weight of the latest batch in the average time per token


class BatchCounts(Protocol):
    """Counts batches and the queue, as function/server/metrics.py does. Any thread calls it."""

    def count_batch(self, texts: int, tokens: int) -> None:
        """Count a batch."""

    def set_queued(self, tokens: int) -> None:
        """Set the number of tokens that wait."""


class QueueFullError(HttpError):
    """The queue takes no more tokens: a 429 with Retry-After."""

    def __init__(self, found: int, most: int, seconds: int) -> None:
        """Take the tokens that wait, the limit, and the seconds until a new request is worthwhile."""
        detail = f"queue: {found} tokens wait for the model, the limit is {most}; try again in {seconds} s"
        super().__init__(429, detail, {"retry-after": str(seconds)})


class BatchingExecutor:
    """Embeds the texts of many requests together, in `threads` threads, and searches large corpora in threads too."""

    def __init__(
        self,
        embedder: Embedder,
        threads: int,
        max_queued_tokens: int,
        tokens_per_batch: int,
        counts: BatchCounts,
    ) -> None:
        """Take an open model, the number of threads that run it, and the limits of the queue (see TokenQueue)."""
        self._embedder = embedder
        self._counts = counts
        self._model_threads = ThreadPoolExecutor(threads, "model")
        self._other_threads = ThreadPoolExecutor(max(threads, OTHER_THREADS), "search")
        self._tokens_per_batch = tokens_per_batch
        self._threads = threads
        self.longest_text = embedder.model.max_tokens  # tokens
        self._announced: dict[asyncio.Task[object] | None, int] = {}  # tokens by the task that answers the request
        self._loop: asyncio.AbstractEventLoop  # the event loop of the latest request
        self._lock = Lock()  # for the next three, which the event loop and the model threads change
        self._queue = TokenQueue(max_queued_tokens, tokens_per_batch, self.longest_text)
        self._idle = threads  # model threads without a batch
        self._seconds_per_token = 0.0  # average of one thread; 0 until the first batch
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
        """Return what `work` returns; many calls can wait at the same time."""
        return await asyncio.to_thread(work)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        """Return what Embedder.embed returns, (n, dim) float32. A caller that is cancelled leaves the queue.

        Raises QueueFullError if the queue is full, unless it is a check of the model or the request was announced.
        """
        results = np.empty((len(tokens), self._embedder.model.dim), np.float32)
        return await self._run_queued(tokens, self._embed_batch, results, is_check=is_check)

    async def score(self, reranker: "Reranker", pairs: Sequence[TokenIds]) -> "Logits":
        """Return what Reranker.score returns, (n,) float32. Pairs wait and are refused as texts are in `embed`."""
        return await self._run_queued(pairs, reranker.score_batch, np.empty(len(pairs), np.float32))

    def _embed_batch(self, texts: Sequence[TokenIds]) -> Embeddings:
        return self._embedder.embed_batch([text.ids for text in texts])

    async def _run_queued(
        self, tokens: Sequence[TokenIds], run: RunBatch, results: Results, *, is_check: bool = False
    ) -> Results:
        """Queue texts, let `run` compute their batches, and return the results."""
        count = sum(len(text.ids) for text in tokens)
        was_announced = bool(self._announced) and self._withdraw()
        if not (is_check or was_announced) and (refusal := self.refusal(count)) is not None:
            raise refusal
        self._loop = asyncio.get_running_loop()
        request = Request(tokens, run, results, self._loop.create_future())
        with self._lock:
            self._queue.add(request)
        try:
            self._start_batches()
            return await request.done
        finally:
            if request.unstarted:  # the caller was cancelled, or a batch failed
                with self._lock:
                    self._queue.remove(request)
                    self._counts.set_queued(self._queue.tokens)

    def refusal(self, tokens: int) -> QueueFullError | None:
        """Return the error that refuses a request with this number of tokens, or None if it is accepted."""
        with self._lock:
            if not self._queue.is_full(tokens):
                return None
            before = self._queue.tokens_before(tokens)
            seconds = ceil(before * self._seconds_per_token / self._threads)
            return QueueFullError(before, self._queue.max_tokens, min(LONGEST_RETRY, max(1, seconds)))

    @contextmanager
    def announced(self, tokens: int) -> Iterator[None]:
        """Count a large request before it is read, so that others are refused before they are read.

        It counts until the same task calls `embed`, which then accepts it, or until the end of the block.
        """
        if not self._queue.is_large(tokens):
            yield
            return
        self._announced[asyncio.current_task()] = tokens
        self._queue.announced_tokens += tokens
        try:
            yield
        finally:
            self._withdraw()

    def _withdraw(self) -> bool:
        """Stop counting the request of this task as announced; return whether it was."""
        tokens = self._announced.pop(asyncio.current_task(), 0)
        self._queue.announced_tokens -= tokens
        return bool(tokens)

    def _start_batches(self) -> None:
        """Start a batch in every idle thread, as long as texts wait. Runs in the event loop."""
        with self._lock:
            while self._idle and (batch := self._take()):
                self._idle -= 1
                running = self._model_threads.submit(self._run_batches, batch)
                running.add_done_callback(Future.result)  # so that concurrent.futures logs an unforeseen error
            self._counts.set_queued(self._queue.tokens)

    def _take(self) -> Batch:
        """Take the next batch and count it; the lock is held."""
        batch = self._queue.take()
        if batch:
            self._counts.count_batch(len(batch), sum(len(request.tokens[row].ids) for request, row in batch))
        return batch

    def _run_batches(self, batch: Batch) -> None:
        """Run a batch, and then the next ones, as long as enough waits. Runs in a model thread."""
        while batch:
            run, texts = batch[0][0].run, [request.tokens[row] for request, row in batch]
            begin = monotonic()
            result: Results | Exception
            try:
                result = run(texts)
            except Exception as error:  # noqa: BLE001  the requests of the batch raise it
                result = error
            end = monotonic()
            if not isinstance(result, Exception) and run == self._embed_batch:
                self.embedded_at = end
            seconds = (end - begin) / (len(texts) * len(texts[0].ids))
            finished = batch
            with self._lock:
                weight = NEWEST if self._seconds_per_token else 1.0
                self._seconds_per_token += (seconds - self._seconds_per_token) * weight
                # if less than a batch waits, the event loop starts the next one, so that more texts can join it
                batch = self._take() if self._queue.tokens >= self._tokens_per_batch else []
                self._idle += not batch
                self._counts.set_queued(self._queue.tokens)
            with suppress(RuntimeError):  # the event loop was closed, and nobody waits for the result
                self._loop.call_soon_threadsafe(self._end_batch, finished, result)

    def _end_batch(self, batch: Batch, result: Results | Exception) -> None:
        """Store the results of a batch in its requests, or raise its error there. Runs in the event loop."""
        self._start_batches()
        for place, (request, row) in enumerate(batch):
            if request.done.done():  # nobody waits for it any more
                continue
            if isinstance(result, Exception):
                request.done.set_exception(result)
                continue
            request.results[row] = result[place]
            request.missing -= 1
            if not request.missing:
                request.done.set_result(request.results)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._other_threads, work)

    def close(self) -> None:
        """End the threads after their current work."""
        self._model_threads.shutdown()
        self._other_threads.shutdown()
