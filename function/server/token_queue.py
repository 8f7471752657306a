"""The texts that wait for a model, and the rules by which a full queue refuses requests. Callers hold a lock.

Two models share the queue: one embeds texts, the other one, the reranker, scores pairs of a query and a text. In this
module a pair is a text too. A batch is for one model, and its texts have the same number of tokens, as in
`Embedder.embed` and `Reranker.score`. So the result of a text is always the same, to the last bit, with any other texts
in the batch.

Requests take turns. A turn is one batch: texts of one request, and as many texts of the same length and for the same
model from other requests as fit. A request with hundreds of texts is split into many batches. After its turn it waits
behind the others, and the next request that arrives overtakes it once.

A large request must not fill the queue for others, so it counts at most as one share of the queue. The tokens of large
requests beyond their shares have a limit too, because they take memory. That limit refuses only large requests.
"""

from asyncio import Future
from collections.abc import Callable, Sequence

import numpy as np

from function.engine.arrays import Array
from function.engine.embedder import TokenIds

SHARES = 16  # a request fills at most this fraction of the queue

Results = Array[np.float32]  # a row for each text: (n, dim) embeddings, or (n,) logits
RunBatch = Callable[[Sequence[TokenIds]], Results]  # runs a model on one batch; equal functions share batches


class Request:
    """The texts of one request, and their results so far."""

    __slots__ = ("can_be_overtaken", "done", "missing", "results", "run", "tokens", "unstarted", "waiting_tokens")

    def __init__(self, tokens: Sequence[TokenIds], run: RunBatch, results: Results, done: "Future[Results]") -> None:
        """Take the texts, the model, an array with a row for the result of each text, and the future that gets it."""
        self.tokens = tokens
        self.run = run
        self.results = results
        self.done = done
        self.missing = len(tokens)  # texts without a result
        self.waiting_tokens = 0  # tokens of the texts that are in the queue
        self.can_be_overtaken = False  # it had a turn, and none overtook it since
        self.unstarted: dict[int, list[int]] = {}  # rows of the texts that are in no batch yet, by number of tokens
        for row in sorted(range(len(tokens)), key=lambda row: len(tokens[row].ids)):
            self.unstarted.setdefault(len(tokens[row].ids), []).append(row)


Batch = list[tuple[Request, int]]  # requests, and the rows of their texts


class TokenQueue:
    """Requests with texts that are in no batch yet."""

    def __init__(self, max_tokens: int, tokens_per_batch: int, longest_text: int) -> None:
        """Take the maximum tokens that wait, of a batch and of a text. A longer text is a batch of its own."""
        self.max_tokens = max_tokens
        self._tokens_per_batch = tokens_per_batch
        self._share = max(max_tokens // SHARES, tokens_per_batch, longest_text)
        self._requests: dict[Request, None] = {}  # the first one's turn is next
        self._tokens_in_shares = 0  # waiting tokens, of each request no more than its share
        self.tokens = 0  # all waiting tokens
        self.announced_tokens = 0  # tokens of large requests that are not read yet

    def is_large(self, tokens: int) -> bool:
        """Return whether a request with this number of tokens has more than its share."""
        return tokens > self._share

    def tokens_before(self, tokens: int) -> int:
        """Return the number of waiting tokens that decides whether a request with `tokens` is refused."""
        if self.is_large(tokens):
            return self.tokens - self._tokens_in_shares + self.announced_tokens
        return self._tokens_in_shares

    def is_full(self, tokens: int) -> bool:
        """Return whether a request with this number of tokens is refused.

        A request is accepted while no other waits. Otherwise it is refused if its share does not fit. A large one is
        also refused while the rest of other large ones reaches the limit.
        """
        if self.is_large(tokens) and self.tokens_before(tokens) >= self.max_tokens:
            return True
        return bool(self._requests) and self._tokens_in_shares + min(tokens, self._share) > self.max_tokens

    def add(self, request: Request) -> None:
        """Let the texts of a request wait."""
        last = next(reversed(self._requests), None)
        self._requests[request] = None
        if last is not None and last.can_be_overtaken:
            last.can_be_overtaken = False
            self._put_last(last)
        self._count(request, sum(length * len(rows) for length, rows in request.unstarted.items()))

    def remove(self, request: Request) -> None:
        """Remove the texts of a request that still wait, if any."""
        if request in self._requests:
            del self._requests[request]
            self._count(request, -request.waiting_tokens)

    def take(self) -> Batch:
        """Take the next batch out of the queue, and put the request whose turn it was behind the others."""
        if not self._requests:
            return []
        first = next(iter(self._requests))
        length = next(reversed(first.unstarted))
        room = max(1, self._tokens_per_batch // length)
        batch: Batch = []
        finished = []
        for request in self._requests:
            rows = request.unstarted.get(length)
            if not rows or request.run != first.run:
                continue
            taken = rows[-room:]
            del rows[-room:]
            batch += [(request, row) for row in taken]
            self._count(request, -length * len(taken))
            if not rows:
                del request.unstarted[length]
            if not request.unstarted:
                finished.append(request)
            room -= len(taken)
            if not room:
                break
        for request in finished:
            del self._requests[request]
        if first in self._requests:
            first.can_be_overtaken = True
            self._put_last(first)
        return batch

    def _put_last(self, request: Request) -> None:
        del self._requests[request]
        self._requests[request] = None

    def _count(self, request: Request, tokens: int) -> None:
        """Add to the waiting tokens of a request; a negative number takes away."""
        before = min(request.waiting_tokens, self._share)
        request.waiting_tokens += tokens
        self.tokens += tokens
        self._tokens_in_shares += min(request.waiting_tokens, self._share) - before
