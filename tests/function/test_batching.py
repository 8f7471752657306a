"""The batches of many requests: what is in them, in which order, and what becomes of requests that fail or leave."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.corpus import Corpus
from function.engine.embedder import TOKENS_PER_BATCH, Embedder, TokenIds
from function.engine.quantization import Embeddings
from function.search import SHORT_QUERY, Query
from function.server.batching import FEW_CHARACTERS, BatchedExecution, QueueFull
from tests.conftest import MAX_TOKENS
from tests.watched import watched_search


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
    """Embeds a text as its first token once the gate is open, and remembers the first tokens of each batch."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.batches: list[list[int]] = []
        self.model: Any = type("Model", (), {"dim": 1})

    def embed_padded(self, ids: list[list[int]]) -> Embeddings:
        assert self.gate.wait(timeout=30)
        self.batches.append([text[0] for text in ids])
        if any(text[0] < 0 for text in ids):
            raise RuntimeError("the session failed")
        return np.array([[text[0]] for text in ids], np.float32)


@pytest.fixture
def gated() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.set()


def execution_over(embedder: Any, threads: int = 1, max_queued_tokens: int = 10**6) -> BatchedExecution:
    return BatchedExecution(embedder, threads, max_queued_tokens, TOKENS_PER_BATCH, Counts())


def text(first: int, length: int = 8) -> TokenIds:
    return TokenIds([first] * length, is_truncated=False)


async def started(execution: BatchedExecution, *requests: Sequence[TokenIds]) -> list["asyncio.Task[Embeddings]"]:
    """Return the tasks of requests that came one after the other, each when it waits."""
    tasks = []
    for request in requests:
        tasks.append(asyncio.create_task(execution.embed(request)))
        await asyncio.sleep(0)
    return tasks


@given(
    st.lists(st.lists(st.integers(1, MAX_TOKENS), min_size=1, max_size=40), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_each_request_gets_its_own_embeddings_in_order_and_to_the_last_bit(
    embedder: Embedder, requests: list[list[int]], threads: int
) -> None:
    rng = np.random.default_rng(seed=5)
    asked = [
        [TokenIds(rng.integers(4, 60, length).tolist(), is_truncated=False) for length in lengths]
        for lengths in requests
    ]
    execution = execution_over(embedder, threads)

    async def ask() -> list[Embeddings]:
        return await asyncio.gather(*map(execution.embed, asked))

    for tokens, embeddings in zip(asked, asyncio.run(ask()), strict=True):
        np.testing.assert_array_equal(embeddings, embedder.embed(tokens))
    assert execution.queued_tokens == 0
    execution.close()


def test_a_text_starts_at_once_and_those_that_come_meanwhile_share_the_next_batch(gated: GatedEmbedder) -> None:
    async def ask() -> None:
        tasks = await started(execution_over(gated), *([text(number)] for number in range(1, 5)))
        gated.gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    assert gated.batches == [[1], [2, 3, 4]]


def test_the_texts_of_a_batch_have_equally_many_tokens_and_no_more_than_fit(gated: GatedEmbedder) -> None:
    fitting = TOKENS_PER_BATCH // 16
    numbers = list(range(2, 2 + fitting + 1))

    async def ask() -> None:
        requests = [[text(1)], [text(2, 16)], [text(99, 9)], *([text(number, 16)] for number in numbers[1:])]
        tasks = await started(execution_over(gated), *requests)
        gated.gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    assert gated.batches == [[1], numbers[:fitting], [99], numbers[fitting:]]


def test_with_one_token_a_batch_each_text_is_embedded_alone(gated: GatedEmbedder) -> None:
    gated.gate.set()
    asyncio.run(BatchedExecution(gated, 1, 10**6, 1, Counts()).embed([text(1)] * 3))  # type: ignore[arg-type]
    assert gated.batches == [[1], [1], [1]]


def test_a_text_longer_than_a_batch_is_one(gated: GatedEmbedder) -> None:
    gated.gate.set()
    execution = execution_over(gated)
    asyncio.run(execution.embed([text(1, TOKENS_PER_BATCH + 1), text(2, TOKENS_PER_BATCH + 1)]))
    assert sorted(gated.batches) == [[1], [2]]


def test_a_small_request_waits_for_one_batch_of_a_large_one(gated: GatedEmbedder) -> None:
    async def ask() -> list[int]:
        large = [text(1, length) for length in range(4, 24) for _ in range(10)]
        tasks = await started(execution_over(gated), large, [text(2, 30)], [text(3, 31)])
        gated.gate.set()
        await asyncio.gather(*tasks)
        return [batch[0] for batch in gated.batches]

    turns = asyncio.run(ask())
    assert turns[:4] == [1, 1, 2, 3]
    assert set(turns[4:]) == {1}


def test_large_requests_take_turns(gated: GatedEmbedder) -> None:
    async def ask() -> None:
        large = [[text(number, 100 + length) for length in range(3)] for number in range(1, 4)]
        tasks = await started(execution_over(gated), *large)
        gated.gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    assert gated.batches == [[1], [1], [2], [3], [1], [2], [3], [2], [3]]


def test_a_cancelled_request_leaves_the_queue(gated: GatedEmbedder) -> None:
    async def ask() -> None:
        execution = execution_over(gated)
        running, leaving, staying = await started(execution, [text(1)], [text(2), text(2, 9)], [text(3)])
        assert execution.queued_tokens == 8 + 17
        leaving.cancel()
        await asyncio.sleep(0)
        assert execution.queued_tokens == 8
        gated.gate.set()
        await asyncio.gather(running, staying)
        assert leaving.cancelled()

    asyncio.run(ask())
    assert gated.batches == [[1], [3]]


def test_a_request_that_is_cancelled_while_it_runs_spoils_no_other(gated: GatedEmbedder) -> None:
    async def ask() -> Embeddings:
        first, leaving, staying = await started(execution_over(gated), [text(1)], [text(2)], [text(3)])
        leaving_and_staying_run = asyncio.create_task(asyncio.wait([first]))
        gated.gate.set()
        await leaving_and_staying_run
        leaving.cancel()
        return await staying

    assert asyncio.run(ask()).tolist() == [[3.0]]


def test_a_failed_batch_reaches_its_requests_and_no_other(gated: GatedEmbedder) -> None:
    async def ask() -> list[Any]:
        requests = [[text(1)], [text(-1), text(5, 30)], [text(2)], [text(3, 9)]]
        execution = execution_over(gated)
        tasks = await started(execution, *requests)
        gated.gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert execution.queued_tokens == 0
        assert (await execution.embed([text(4)])).tolist() == [[4.0]]  # and it goes on
        return answers

    first, failed, shared, other = asyncio.run(ask())
    assert first.tolist() == [[1.0]]
    assert str(failed) == str(shared) == "the session failed"
    assert other.tolist() == [[3.0]]


def test_a_full_queue_refuses_and_takes_more_when_it_is_emptier(gated: GatedEmbedder) -> None:
    async def ask() -> None:
        execution = execution_over(gated, max_queued_tokens=16)
        tasks = await started(execution, [text(1)], [text(2)], [text(3)])
        with pytest.raises(QueueFull) as refused:
            await execution.embed([text(4, 1)])
        assert (refused.value.status_code, refused.value.headers) == (429, {"retry-after": "1"})
        gated.gate.set()
        await asyncio.gather(*tasks)
        await execution.embed([text(5)])

    asyncio.run(ask())


def test_a_request_larger_than_the_queue_is_taken_while_nothing_waits(gated: GatedEmbedder) -> None:
    gated.gate.set()
    execution = execution_over(gated, max_queued_tokens=1)
    assert len(asyncio.run(execution.embed([text(1)] * 300))) == 300


def test_texts_are_tokenized_as_the_embedder_does_on_the_loop_and_in_a_thread(
    embedder: Embedder, corpus: Corpus
) -> None:
    execution = execution_over(embedder)
    for texts in (corpus.texts[:2], [" ".join(corpus.texts)]):
        assert asyncio.run(execution.tokenize(texts, "query")) == embedder.tokenize(texts, "query")
    assert len(" ".join(corpus.texts)) > FEW_CHARACTERS


@pytest.mark.parametrize("is_long", [False, True])
def test_work_returns_what_it_found_or_raises(embedder: Embedder, is_long: bool) -> None:
    execution = BatchedExecution(embedder, 1, 100, TOKENS_PER_BATCH, Counts())
    assert asyncio.run(execution.run(lambda: "found", is_long=is_long)) == "found"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(execution.run(lambda: 1 // 0, is_long=is_long))


@pytest.mark.parametrize("is_long", [False, True])
def test_long_work_is_done_in_another_thread(embedder: Embedder, is_long: bool) -> None:
    execution = BatchedExecution(embedder, 1, 100, TOKENS_PER_BATCH, Counts())
    thread = asyncio.run(execution.run(threading.current_thread, is_long=is_long))
    assert (thread is threading.current_thread()) == (not is_long)


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_filters_are_long_work_and_so_is_a_search_of_a_large_corpus(
    bundle: Path, embedder: Embedder, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, was_long = watched_search(bundle, embedder)
    query = Query("an angry goose", mode=mode, filter={"chapter": 5})
    asyncio.run(search(query))
    assert was_long.pop(0)
    assert set(was_long) == {False}
    was_long.clear()
    monkeypatch.setattr("function.search.FEW_ROWS", 199)
    asyncio.run(search(query))
    assert set(was_long) == {True}


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize("characters", [SHORT_QUERY, SHORT_QUERY + 1])
def test_looking_up_the_words_of_a_long_text_is_long_work(
    bundle: Path, embedder: Embedder, mode: str, characters: int
) -> None:
    search, was_long = watched_search(bundle, embedder)
    asyncio.run(search(Query("goose " + "x" * (characters - 6), mode=mode)))
    assert was_long == [characters > SHORT_QUERY, False]


def test_batches_and_the_queue_are_counted(gated: GatedEmbedder) -> None:
    counts = Counts()
    execution = BatchedExecution(gated, 1, 10**6, TOKENS_PER_BATCH, counts)  # type: ignore[arg-type]

    async def ask() -> None:
        tasks = await started(execution, [text(1)], [text(2)], [text(3), text(4)])
        assert (counts.batches, counts.queued) == ([(1, 8)], 24)
        gated.gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    assert (counts.batches, counts.queued) == ([(1, 8), (3, 24)], 0)
