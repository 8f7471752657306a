"""Whose texts are embedded next, and whom a full queue refuses: no threads, no event loop, no model."""

from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.engine.embedder import TokenIds
from function.server.token_queue import SHARES, Request, Results, RunBatch, TokenQueue

MOST, BATCH, LONGEST = 16_000, 128, 256
SHARE = MOST // SHARES


def a_queue(most: int = MOST) -> TokenQueue:
    return TokenQueue(most, BATCH, LONGEST)


def embed(texts: Sequence[TokenIds]) -> Results:
    raise AssertionError  # only the owner of the queue runs a model


def score(pairs: Sequence[TokenIds]) -> Results:
    raise AssertionError


def a_request(*lengths: int, run: RunBatch = embed) -> Request:
    done: Any = None  # only the owner of the queue needs it
    tokens = [TokenIds([0] * length, is_truncated=False) for length in lengths]
    return Request(tokens, run, np.empty(len(tokens), np.float32), done)


def bulk(tokens: int, length: int = 100, run: RunBatch = embed) -> Request:
    return a_request(*[length] * (tokens // length), run=run)


def requests_of(batches: Sequence[Sequence[tuple[Request, int]]]) -> list[Request]:
    """Return the request whose turn each batch was."""
    return [batch[0][0] for batch in batches]


def test_a_bulk_request_fills_no_more_than_its_share_of_the_queue() -> None:
    queue = a_queue()
    queue.add(bulk(300_000))
    added = 0
    while not queue.is_full(100):
        queue.add(a_request(100))
        added += 100
    assert added == MOST - SHARE
    assert queue.tokens == 300_000 + added


def test_a_request_is_accepted_whatever_its_size_while_none_waits() -> None:
    queue = a_queue(most=1)
    assert not queue.is_full(300_000)
    queue.add(bulk(1_000))
    assert queue.is_full(1)
    while queue.take():
        pass
    assert not queue.is_full(300_000)


def test_bulk_requests_are_refused_until_less_waits_and_small_ones_are_not() -> None:
    queue = a_queue()
    first = bulk(MOST + SHARE + 100)
    queue.add(first)
    assert queue.is_full(SHARE + 1)
    assert not queue.is_full(SHARE)
    queue.take()
    assert queue.is_full(SHARE + 1)  # exactly at the limit
    queue.take()
    assert not queue.is_full(300_000)  # so that requests of middle size cannot keep a bulk request out
    queue.add(bulk(300_000))
    assert queue.is_full(SHARE + 1)
    assert not queue.is_full(SHARE)


def test_a_bulk_request_that_is_not_read_yet_keeps_others_out() -> None:
    queue = a_queue()
    queue.announced_tokens = MOST
    assert queue.is_full(SHARE + 1)
    assert queue.tokens_before(SHARE + 1) == MOST
    assert not queue.is_full(SHARE)
    assert queue.tokens_before(SHARE) == 0


def test_the_share_of_a_small_queue_holds_a_batch_and_a_text() -> None:
    queue = a_queue(most=300)
    queue.add(a_request(*[16] * 100))
    assert queue.is_large(LONGEST + 1)
    assert not queue.is_large(LONGEST)
    assert queue.is_full(300 - LONGEST + 1)
    assert not queue.is_full(300 - LONGEST)


def test_a_new_request_overtakes_a_bulk_request_that_had_its_turn() -> None:
    queue, large, small = a_queue(), bulk(1_000), a_request(9)
    queue.add(large)
    first = queue.take()
    queue.add(small)
    assert requests_of([first, queue.take(), queue.take()]) == [large, small, large]


@pytest.mark.parametrize("backlog", [1, 5])
def test_a_bulk_request_is_not_starved_by_small_ones(backlog: int) -> None:
    queue, large = a_queue(), bulk(10_000)
    lengths = count(101)  # all different, so that no two share a batch
    for _ in range(backlog):
        queue.add(a_request(next(lengths)))
    queue.add(large)
    turns = []
    for _ in range(50):
        turns.append(queue.take()[0][0])
        if turns[-1] is not large:  # another one arrives for each that is embedded
            queue.add(a_request(next(lengths)))
    places = [place for place, request in enumerate(turns) if request is large]
    assert places[0] == backlog
    # its own turn, those of the requests that waited before it, and that of the one that overtook it
    assert {later - place for place, later in pairwise(places)} == {1 + backlog + 1}


def test_bulk_requests_take_turns() -> None:
    queue, bulks = a_queue(), [bulk(1_000) for _ in range(3)]
    for each in bulks:
        queue.add(each)
    assert requests_of([queue.take() for _ in range(6)]) == bulks * 2


def test_texts_of_equal_length_join_the_batch_of_a_bulk_request() -> None:
    queue, large, small = a_queue(), bulk(1_000, length=20), a_request(20)
    large.unstarted[20] = large.unstarted[20][:4]  # room for two more
    queue.add(large)
    queue.add(small)
    assert [request for request, _ in queue.take()] == [large] * 4 + [small]
    assert not queue.take()


def test_a_batch_is_for_one_model_alone() -> None:
    queue = a_queue()
    texts, pairs, more_texts, more_pairs = (a_request(20, run=run) for run in (embed, score, embed, score))
    for each in (texts, pairs, more_texts, more_pairs):
        queue.add(each)
    assert [[request for request, _ in queue.take()] for _ in range(3)] == [
        [texts, more_texts],
        [pairs, more_pairs],
        [],
    ]


def test_a_small_request_overtakes_a_bulk_request_for_the_other_model() -> None:
    for bulky, other in ((score, embed), (embed, score)):
        queue, large, small = a_queue(), bulk(1_000, length=20, run=bulky), a_request(20, run=other)
        queue.add(large)
        first = queue.take()
        queue.add(small)
        assert requests_of([first, queue.take(), queue.take()]) == [large, small, large]


def test_pairs_and_texts_fill_the_same_queue() -> None:
    queue = a_queue()
    queue.add(bulk(300_000, run=score))
    while not queue.is_full(100):
        queue.add(a_request(100))
    assert queue.tokens == 300_000 + MOST - SHARE
    assert queue.is_full(SHARE + 1)


@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(1, LONGEST), min_size=1, max_size=60),  # the texts of a request that arrives
            st.just("take"),
            st.just("leave"),
        ),
        max_size=60,
    ),
    st.integers(1, 5_000),
)
def test_the_counts_are_those_of_the_texts_that_wait_and_stay_bounded(steps: list[list[int] | str], most: int) -> None:
    queue = a_queue(most)
    share = max(most // SHARES, BATCH, LONGEST)
    waiting: list[Request] = []
    taken: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    for step in steps:
        if step == "take":
            batch = queue.take()
            lengths = {len(request.tokens[row].ids) for request, row in batch}
            assert len(lengths) <= 1
            assert len({request.run for request, row in batch}) <= 1
            assert len(batch) <= 1 or len(batch) * lengths.pop() <= BATCH
            taken += [(id(request), row) for request, row in batch]
        elif step == "leave":
            if waiting:
                left = waiting.pop(0)
                expected = [(owner, row) for owner, row in expected if owner != id(left) or (owner, row) in taken]
                queue.remove(left)
                queue.remove(left)
        elif isinstance(step, list) and not queue.is_full(sum(step)):
            request = a_request(*step, run=(embed, score)[sum(step) % 2])
            queue.add(request)
            waiting.append(request)
            expected += [(id(request), row) for row in range(len(step))]
        tokens = [sum(length * len(rows) for length, rows in request.unstarted.items()) for request in waiting]
        assert queue.tokens == sum(tokens)
        assert queue.tokens_before(1) == sum(min(count, share) for count in tokens)
        assert queue.tokens_before(1) <= max(most, share)
        assert queue.tokens <= 2 * most + 60 * LONGEST + share
    while batch := queue.take():
        taken += [(id(request), row) for request, row in batch]
    assert sorted(taken) == sorted(expected)
    assert (queue.tokens, queue.tokens_before(1)) == (0, 0)
