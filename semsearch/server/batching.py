"""One bounded queue of texts for the model: in batches of equal length, and refused with 429 when it is full.

Two models share the queue: one embeds texts, the other one, the reranker, scores pairs of a query and a text. In this
module a pair is a text too. A batch is for one model, and its texts have the same number of tokens, as in
`Embedder.embed` and `Reranker.score`. So the result of a text is always the same, to the last bit, with any other texts
in the batch.

While the model threads are busy, texts wait; the text that has waited longest decides the next batch. A request with
many texts is split: only one piece of it waits at a time, so that other requests have their turns between its pieces.
All of this runs in the event loop, and only the models run in threads.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from semsearch.app.errors import reply_to
from semsearch.app.http import ASGIApp, HttpError, Message, Receive, Scope, Send, header
from semsearch.app.middleware import discard_body
from semsearch.app.reloading.reloader import bundle_of_request
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tensors import Array
from semsearch.search.executor import Executor, Returned

if TYPE_CHECKING:
    from semsearch.engine.rerank.reranker import Logits, Reranker
    from semsearch.server.metrics import Metrics

Outputs = Array[np.float32]  # a row for each text: (n, dim) embeddings, or (n,) logits
RunBatch = Callable[[Sequence[TokenIds]], Outputs]  # runs a model on one batch; equal functions share batches

FEW_CHARACTERS = 4_000  # characters that are tokenized in about a millisecond; more are tokenized in a thread
OTHER_THREADS = 4  # with one, a search would wait while a bulk request is tokenized, and while its reply is written
BATCHES_PER_PIECE = 4  # batches of one request that wait at a time for each thread
RETRY_AFTER = 2  # seconds, in which a core embeds a full queue of the default length with all-MiniLM-L6-v2
LARGE_BODY = 4_096  # bytes; parsing a smaller one takes less time than refusing it
PATHS_WITHOUT_TEXTS = ("/info", "/metrics")
FEW_ROWS = 100_000  # number of rows that are searched in about a millisecond


@dataclass(slots=True, eq=False)
class Piece:
    """Texts of one request that wait at the same time, and the array for the results of the whole request."""

    tokens: Sequence[TokenIds]  # tokens of the whole request, as in `results`
    rows: Sequence[int]
    results: Outputs
    done: "asyncio.Future[None]"
    missing: int  # rows without a result


@dataclass(slots=True)
class Waiting:
    """A text in the queue."""

    number: int  # texts that came later have a larger one
    piece: Piece
    row: int


class BatchingExecutor(Executor):
    """Embeds the texts of many requests together, in `threads` threads, and searches large corpora in threads too."""

    def __init__(
        self, embedder: Embedder | None, threads: int, max_queued_tokens: int, tokens_per_batch: int, metrics: "Metrics"
    ) -> None:
        """Take an open model, the number of threads that run it, and the maximum tokens of the queue and of a batch.

        A text that has more tokens than a batch is a batch of its own.
        """
        super().__init__(embedder)
        self._metrics = metrics
        self._model_threads = ThreadPoolExecutor(threads, "model")
        self._other_threads = ThreadPoolExecutor(max(threads, OTHER_THREADS), "search")
        self._threads = self._idle = threads
        self._max_tokens = max_queued_tokens
        self._tokens_per_batch = tokens_per_batch
        self._queue: dict[tuple[RunBatch, int], list[Waiting]] = {}  # by model and number of tokens, never empty
        self._numbers = count()
        self._tokens = 0  # in the queue

    async def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        """Return what Embedder.tokenize returns."""
        if sum(map(len, texts)) <= FEW_CHARACTERS:
            return self.embedder.tokenize(texts, role)
        return await self._in_thread(lambda: self.embedder.tokenize(texts, role))

    async def run(self, work: Callable[[], Returned], *, rows: int | None = None) -> Returned:
        """Return what `work` returns, done in a thread unless it takes less than about a millisecond."""
        if rows is not None and rows <= FEW_ROWS:
            return work()
        return await self._in_thread(work)

    async def wait(self, work: Callable[[], Returned]) -> Returned:
        """Return what `work` returns; many calls can wait at the same time."""
        return await asyncio.to_thread(work)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        """Return what Embedder.embed returns, (n, dim) float32. A caller that is cancelled leaves the queue.

        Raises HttpError with status 429 if the queue is full, unless it is a check of the model.
        """
        if not is_check:
            self.check_room(sum(len(text.ids) for text in tokens))
        results = np.empty((len(tokens), self.embedder.model.dim), np.float32)
        return await self._run_queued(tokens, self._embed_batch, results)

    async def score(self, reranker: "Reranker", pairs: Sequence[TokenIds]) -> "Logits":
        """Return what Reranker.score returns, (n,) float32. Pairs wait and are refused as texts are in `embed`."""
        self.check_room(sum(len(pair.ids) for pair in pairs))
        return await self._run_queued(pairs, reranker.score_batch, np.empty(len(pairs), np.float32))

    def check_room(self, tokens: int) -> None:
        """Raise HttpError with status 429 if a request with this number of tokens does not fit beside those that wait.

        Of a large request only one piece waits. If nothing waits, a request of any size fits.
        """
        piece = BATCHES_PER_PIECE * self._threads * self._tokens_per_batch
        if self._queue and self._tokens + min(tokens, piece) > self._max_tokens:
            found = f"{self._tokens} tokens wait for the model, the limit is {self._max_tokens}"
            advice = f"try again in {RETRY_AFTER} s"
            raise HttpError(429, f"queue: {found}; {advice}", {"retry-after": str(RETRY_AFTER)})

    def _embed_batch(self, texts: Sequence[TokenIds]) -> Embeddings:
        embeddings = self.embedder.embed_batch([text.ids for text in texts])
        self.embedded_at: float = monotonic()
        return embeddings

    async def _run_queued(self, tokens: Sequence[TokenIds], run: RunBatch, results: Outputs) -> Outputs:
        loop = asyncio.get_running_loop()
        for rows in self._split(tokens):
            piece = Piece(tokens, rows, results, loop.create_future(), len(rows))
            for row in rows:
                length = len(tokens[row].ids)
                self._queue.setdefault((run, length), []).append(Waiting(next(self._numbers), piece, row))
                self._tokens += length
            try:
                self._start_batches()
                await piece.done
            finally:
                if piece.missing:  # the caller was cancelled, or a batch failed
                    self._remove(piece)
        return results

    def _split(self, tokens: Sequence[TokenIds]) -> Iterator[list[int]]:
        """Yield the rows of each piece: those of BATCHES_PER_PIECE whole batches for each thread."""
        batches: list[list[int]] = []
        by_length = sorted(range(len(tokens)), key=lambda row: len(tokens[row].ids))
        for length, equal in groupby(by_length, key=lambda row: len(tokens[row].ids)):
            rows, room = list(equal), self._room(length)
            batches += [rows[start : start + room] for start in range(0, len(rows), room)]
        size = BATCHES_PER_PIECE * self._threads
        for start in range(0, len(batches), size):
            yield [row for batch in batches[start : start + size] for row in batch]

    def _room(self, length: int) -> int:
        return max(1, self._tokens_per_batch // length)

    def _start_batches(self) -> None:
        while self._idle and self._queue:
            run, length = key = min(self._queue, key=lambda key: self._queue[key][0].number)
            texts = self._queue.pop(key)
            batch, rest = texts[: self._room(length)], texts[self._room(length) :]
            if rest:
                self._queue[key] = rest
            self._idle -= 1
            self._tokens -= length * len(batch)
            self._metrics.count_batch(len(batch), length * len(batch))
            work = partial(run, [text.piece.tokens[text.row] for text in batch])
            running = asyncio.get_running_loop().run_in_executor(self._model_threads, work)
            running.add_done_callback(partial(self._end_batch, batch))
        self._metrics.set_queued(self._tokens)

    def _end_batch(self, batch: Sequence[Waiting], running: "asyncio.Future[Outputs]") -> None:
        """Store the results of a batch in its requests, or raise its error there."""
        self._idle += 1
        self._start_batches()
        error = running.exception()
        for place, text in enumerate(batch):
            piece = text.piece
            if piece.done.done():  # nobody waits for it any more
                continue
            if error is not None:
                piece.done.set_exception(error)
                continue
            piece.results[text.row] = running.result()[place]
            piece.missing -= 1
            if not piece.missing:
                piece.done.set_result(None)

    def _remove(self, piece: Piece) -> None:
        for key, texts in list(self._queue.items()):
            kept = [text for text in texts if text.piece is not piece]
            self._tokens -= key[1] * (len(texts) - len(kept))
            if kept:
                self._queue[key] = kept
            else:
                del self._queue[key]
        self._metrics.set_queued(self._tokens)

    async def _in_thread(self, work: Callable[[], Returned]) -> Returned:
        return await asyncio.get_running_loop().run_in_executor(self._other_threads, work)

    def close(self) -> None:
        """End the threads after their current work."""
        self._model_threads.shutdown()
        self._other_threads.shutdown()


class Admission:
    """Refuses requests before their body is parsed.

    While the bundle is behind, each gets 503. While the queue is full, one with a large body gets 429. Some callers try
    again at once, and each of their requests would take processor time from the model. So a 429 is sent after `delay`
    seconds.
    """

    def __init__(self, app: ASGIApp, executor: BatchingExecutor, delay: float = RETRY_AFTER) -> None:
        self._app = app
        self._executor = executor
        self._delay = delay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def delayed_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 429:
                await asyncio.sleep(self._delay)
            await send(message)

        try:
            self._check(scope)
        except HttpError as refusal:
            await discard_body(receive)
            await reply_to(refusal, scope["path"])(scope, receive, delayed_send)
            return
        await self._app(scope, receive, delayed_send)

    def _check(self, scope: Scope) -> None:
        """Raise HttpError if a request is refused."""
        served = bundle_of_request.get()
        if served is not None and served.is_behind and scope["path"] not in PATHS_WITHOUT_TEXTS:
            found = "bundle: this process cannot open the texts that the server has served last"
            raise HttpError(503, f"{found}, expected them on its disk or in S3; try again later")
        announced = header(scope, b"content-length")
        if announced.isdigit() and int(announced) > LARGE_BODY:
            self._executor.check_room(int(announced))  # more than its tokens; of many tokens, only one piece waits
