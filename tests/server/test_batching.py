"""The queue of the model: what a batch holds, whom a full queue refuses, and requests that fail or leave."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from semsearch.app.http import HttpError
from semsearch.app.reloading.reloader import ActiveBundle, bundle_of_request
from semsearch.engine.bundle import read_manifest
from semsearch.engine.embedder import TOKENS_PER_BATCH, Embedder, TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.engine.rerank.reranker import Logits, Reranker
from semsearch.server.batching import (
    BATCHES_PER_PIECE,
    FEW_CHARACTERS,
    FEW_ROWS,
    LARGE_BODY,
    Admission,
    BatchingExecutor,
)
from tests.world import MAX_TOKENS


class Counts:
    """Remembers the batches and the last length of the queue."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []
        self.queued = 0

    def count_batch(self, texts: int, tokens: int) -> None:
        self.batches.append((texts, tokens))

    def set_queued(self, tokens: int) -> None:
        self.queued = tokens


class GatedEmbedder:
    """Embeds a text as its first token once the gate is open, and remembers the first tokens of each batch.

    It is also a reranker, which scores a pair with its first token. While the gate is closed, `allow` lets one batch
    pass.
    """

    def __init__(self) -> None:
        self.is_open = True
        self.gate = threading.Event()
        self.begun = 0  # batches
        self.batches: list[list[int]] = []
        self.model: Any = type("Model", (), {"dim": 1, "max_tokens": TOKENS_PER_BATCH})
        self._allowed = threading.Semaphore(0)

    def allow(self) -> None:
        self._allowed.release()

    def embed_batch(self, ids: list[list[int]]) -> Embeddings:
        self.begun += 1
        end = time.monotonic() + 30
        while not (self.gate.is_set() or self._allowed.acquire(timeout=0.01)):
            assert time.monotonic() < end
        self.batches.append([text[0] for text in ids])
        if any(text[0] < 0 for text in ids):
            raise RuntimeError("the session failed")
        return np.array([[text[0]] for text in ids], np.float32)

    def score_batch(self, pairs: Sequence[TokenIds]) -> Logits:
        return self.embed_batch([pair.ids for pair in pairs])[:, 0]


@pytest.fixture
def gated() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.set()


@pytest.fixture(scope="module")
def reranker(rerank_bundle: Path) -> Reranker:
    return Reranker.open(rerank_bundle, read_manifest(rerank_bundle))


def execution_over(
    embedder: Any, threads: int = 1, max_queued_tokens: int = 10**6, counts: Any = None
) -> BatchingExecutor:
    metrics: Any = counts or Counts()
    return BatchingExecutor(embedder, threads, max_queued_tokens, TOKENS_PER_BATCH, metrics)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Return when something has become so, while the event loop goes on."""
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.001)


def text(first: int, length: int = 8) -> TokenIds:
    return TokenIds([first] * length, is_truncated=False)


async def started(
    executor: BatchingExecutor, *requests: Sequence[TokenIds], reranker: Any = None
) -> list["asyncio.Task[Embeddings]"]:
    """Return the tasks of requests that came one after the other, each when it waits. A reranker scores pairs."""
    tasks = []
    for request in requests:
        work = executor.embed(request) if reranker is None else executor.score(reranker, request)
        tasks.append(asyncio.create_task(work))
        await asyncio.sleep(0)
    return tasks


@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(4, MAX_TOKENS), min_size=1, max_size=40)), max_size=12),
    st.integers(1, 3),
)
def test_each_request_gets_its_own_results_in_order_and_to_the_last_bit(
    embedder: Embedder, reranker: Reranker, requests: list[tuple[bool, list[int]]], threads: int
) -> None:
    rng = np.random.default_rng(seed=5)
    asked = [
        (
            is_pairs,
            [TokenIds(rng.integers(4, 60, length).tolist(), False, [0, 0, *[1] * (length - 2)]) for length in lengths],
        )
        for is_pairs, lengths in requests
    ]
    counts = Counts()
    executor = execution_over(embedder, threads, counts=counts)

    async def ask() -> list[Embeddings]:
        both = (executor.score(reranker, tokens) if is_pairs else executor.embed(tokens) for is_pairs, tokens in asked)
        return await asyncio.gather(*both)

    for (is_pairs, tokens), found in zip(asked, asyncio.run(ask()), strict=True):
        np.testing.assert_array_equal(found, reranker.score(tokens) if is_pairs else embedder.embed(tokens))
    assert counts.queued == 0
    assert all(texts == 1 or tokens <= TOKENS_PER_BATCH for texts, tokens in counts.batches)
    executor.close()


async def test_a_text_starts_at_once_and_those_that_come_meanwhile_share_batches_of_equal_lengths_that_fit(
    gated: GatedEmbedder,
) -> None:
    fitting = TOKENS_PER_BATCH // 16
    numbers = list(range(2, 2 + fitting + 1))
    requests = [[text(1)], [text(2, 16)], [text(99, 9)], *([text(number, 16)] for number in numbers[1:])]
    tasks = await started(execution_over(gated), *requests)
    gated.gate.set()
    await asyncio.gather(*tasks)
    assert gated.batches == [[1], numbers[:fitting], [99], numbers[fitting:]]


async def test_a_text_that_comes_while_a_batch_runs_shares_the_next_one(gated: GatedEmbedder) -> None:
    executor = execution_over(gated)
    tasks = await started(executor, [text(1)], [text(2, 16)], [text(3, 9)])
    gated.allow()
    await eventually(lambda: gated.begun > 1)
    tasks += await started(executor, [text(4, 9)])
    gated.gate.set()
    await asyncio.gather(*tasks)
    assert gated.batches == [[1], [2], [3, 4]]


async def test_a_text_with_more_tokens_than_a_batch_is_a_batch_of_its_own(gated: GatedEmbedder) -> None:
    (task,) = await started(execution_over(gated), [text(number, TOKENS_PER_BATCH + 1) for number in (1, 2, 3)])
    gated.gate.set()
    await task
    assert gated.batches == [[1], [2], [3]]


async def test_the_pairs_of_several_requests_share_a_batch_but_not_with_texts_or_another_reranker(
    gated: GatedEmbedder,
) -> None:
    other = GatedEmbedder()  # that of a newer bundle
    other.gate = gated.gate
    executor = execution_over(gated)
    tasks = await started(executor, [text(1)])
    for number in (2, 4):
        tasks += await started(executor, [text(number)], reranker=gated)
        tasks += await started(executor, [text(number + 1)])
        tasks += await started(executor, [text(number)], reranker=other)
    gated.gate.set()
    assert [(await task).tolist() for task in tasks[1:3]] == [[2.0], [[3.0]]]
    await asyncio.gather(*tasks)
    assert (gated.batches, other.batches) == ([[1], [2, 4], [3, 5]], [[2, 4]])


async def test_small_requests_wait_for_one_piece_of_a_bulk_request(gated: GatedEmbedder) -> None:
    executor = execution_over(gated, max_queued_tokens=16_384)
    (bulk,) = await started(executor, [text(1, 50)] * 2_000)
    waited = []
    for number in range(2, 10):
        await eventually(lambda: gated.begun > len(gated.batches))
        begun = gated.begun - 1  # the batch that runs counts
        small = asyncio.create_task(executor.embed([text(number, 4)]))
        await asyncio.sleep(0)
        while not small.done():
            done = len(gated.batches)
            gated.allow()
            await eventually(lambda done=done: len(gated.batches) > done)  # type: ignore[misc]
            await asyncio.sleep(0.001)
        await small
        waited.append(len(gated.batches) - begun)
    assert not bulk.done()
    gated.gate.set()
    assert len(await bulk) == 2_000
    assert max(waited) <= BATCHES_PER_PIECE + 1


async def test_a_cancelled_request_leaves_the_queue(gated: GatedEmbedder) -> None:
    counts = Counts()
    executor = execution_over(gated, counts=counts)
    running, leaving, staying = await started(executor, [text(1)], [text(2), text(2, 9)], [text(3)])
    assert counts.queued == 8 + 17
    leaving.cancel()
    await asyncio.sleep(0)
    assert counts.queued == 8
    gated.gate.set()
    await asyncio.gather(running, staying)
    assert leaving.cancelled()
    assert gated.batches == [[1], [3]]


async def test_a_request_that_is_cancelled_while_its_batch_runs_keeps_no_result_from_the_others(
    gated: GatedEmbedder,
) -> None:
    running, leaving, staying = await started(execution_over(gated), [text(1)], [text(2)], [text(3)])
    gated.allow()
    await eventually(lambda: gated.begun > 1)
    leaving.cancel()
    await asyncio.wait([leaving])
    gated.gate.set()
    assert [(await task).tolist() for task in (running, staying)] == [[[1.0]], [[3.0]]]
    assert gated.batches == [[1], [2, 3]]


async def test_a_failed_batch_reaches_its_requests_and_no_other(gated: GatedEmbedder) -> None:
    counts = Counts()
    executor = execution_over(gated, counts=counts)
    tasks = await started(executor, [text(1)], [text(-1), text(5, 30)], [text(2)], [text(3, 9)])
    gated.gate.set()
    answers: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert counts.queued == 0
    assert (await executor.embed([text(4)])).tolist() == [[4.0]]  # and it goes on
    first, failed, shared, other = answers
    assert first.tolist() == [[1.0]]
    assert str(failed) == str(shared) == "the session failed"
    assert other.tolist() == [[3.0]]


async def test_a_full_queue_refuses_texts_and_pairs_but_no_check_and_takes_more_when_it_is_emptier(
    gated: GatedEmbedder,
) -> None:
    executor = execution_over(gated, max_queued_tokens=16)
    tasks = await started(executor, [text(1)], [text(2)], [text(2)])  # the last one fills the queue
    for refused in (executor.embed([text(4, 1)]), executor.score(gated, [text(4, 1)])):  # type: ignore[arg-type]
        with pytest.raises(HttpError) as refusal:
            await refused
        assert (refusal.value.status_code, refusal.value.headers) == (429, {"retry-after": "2"})
        assert refusal.value.detail == "queue: 16 tokens wait for the model, the limit is 16; try again in 2 s"
    tasks += [asyncio.create_task(executor.embed([text(3)], is_check=True))]
    await asyncio.sleep(0)
    gated.gate.set()
    await asyncio.gather(*tasks)
    await executor.embed([text(5)])


async def test_a_request_of_any_size_is_accepted_while_none_waits_and_fills_no_more_than_a_piece(
    gated: GatedEmbedder,
) -> None:
    threads = 2
    piece = BATCHES_PER_PIECE * threads * TOKENS_PER_BATCH
    counts = Counts()
    executor = execution_over(gated, threads, max_queued_tokens=piece + 8, counts=counts)
    tasks = await started(executor, [text(1)], [text(2)], [text(3)])
    executor.check_room(10**6)  # beside the 8 tokens that wait
    tasks += await started(executor, [text(4, 64)] * 1_000)
    assert counts.queued == piece + 8
    with pytest.raises(HttpError, match="429"):
        await executor.embed([text(5)])
    gated.gate.set()
    await asyncio.gather(*tasks)
    executor.check_room(10**6)


async def test_a_closed_executor_has_no_threads(gated: GatedEmbedder) -> None:
    executor = execution_over(gated)
    executor.close()
    for work in (executor.embed([text(1)]), executor.run(threading.current_thread)):
        with pytest.raises(RuntimeError, match="after shutdown"):
            await work


LARGE = b"{" * (LARGE_BODY + 1)


@pytest.mark.parametrize(
    ("body", "header", "status", "retry_after"),
    [
        (LARGE, (b"content-length", b"%d" % len(LARGE)), 429, "2"),
        (b"{}", (b"content-length", b"%d" % LARGE_BODY), 200, None),  # it may need no model
        (b"{}", (b"transfer-encoding", b"chunked"), 200, None),
    ],
    ids=["large", "small", "of unknown length"],
)
async def test_a_full_queue_refuses_a_large_body_before_it_is_parsed_and_no_other(
    gated: GatedEmbedder, body: bytes, header: tuple[bytes, bytes], status: int, retry_after: str | None
) -> None:
    executor = execution_over(gated, max_queued_tokens=1)
    tasks = await started(executor, [text(1)], [text(2)])
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": [header]}
    delayed = asyncio.create_task(Admission(app, executor, delay=1_000)(scope, receive, send))
    await asyncio.wait([delayed], timeout=0.05)
    assert (delayed.done(), len(sent)) == ((False, 0) if status == 429 else (True, 1))
    delayed.cancel()
    await Admission(app, executor, delay=0.0)(scope, receive, send)
    gated.gate.set()
    await asyncio.gather(*tasks)
    assert (sent[0]["status"], Headers(raw=sent[0]["headers"]).get("retry-after")) == (status, retry_after)


@pytest.mark.parametrize(("path", "status"), [("/similar", 503), ("/health", 503), ("/info", 200), ("/metrics", 200)])
async def test_a_process_whose_bundle_is_behind_refuses_all_but_what_operators_read(
    gated: GatedEmbedder, path: str, status: int
) -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    served: Any = None
    bundle_of_request.set(ActiveBundle(served, "", None, is_behind=True))  # in the context of this test alone
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    await Admission(app, execution_over(gated))(scope, receive, send)
    assert sent[0]["status"] == status


@pytest.mark.parametrize("rows", [FEW_ROWS, FEW_ROWS + 1, None])
def test_long_work_is_done_in_another_thread(embedder: Embedder, rows: int | None) -> None:
    executor = execution_over(embedder)
    thread = asyncio.run(executor.run(threading.current_thread, rows=rows))
    assert (thread is threading.current_thread()) == (rows == FEW_ROWS)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(executor.run(lambda: 1 // 0, rows=rows))


async def test_many_characters_are_tokenized_in_another_thread_and_waiting_has_threads_of_its_own() -> None:
    def tokenize(texts: Sequence[str], role: str) -> tuple[Any, ...]:
        return texts, role, threading.current_thread() is threading.main_thread()

    executor = execution_over(SimpleNamespace(tokenize=tokenize, is_open=True))
    for more in (0, 1):
        texts = ["a", "b" * (FEW_CHARACTERS - 1 + more)]
        found: Any = await executor.tokenize(texts, "query")
        assert found == (texts, "query", more == 0)
    found = await executor.tokenize([])
    assert found == ([], "", True)
    others = [await executor.wait(threading.current_thread) for _ in range(2)]
    assert None not in others
    assert threading.current_thread() not in others
