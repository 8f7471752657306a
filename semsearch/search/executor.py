"""The executor runs the work of requests. Routes await it, and work with any subclass."""

import math
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semsearch.engine.embedder import Embedder, RunBatches, TokenIds
from semsearch.engine.quantization import Embeddings

if TYPE_CHECKING:
    from semsearch.engine.rerank.reranker import Logits, Reranker

Returned = TypeVar("Returned")


class Executor:
    """How routes use the model and the processor: here, all work is done at once in the calling thread.

    That is enough in Lambda, where a process has one request at a time.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        """Take the open model of a bundle, None if it has none: then nothing may be embedded."""
        self._embedder = embedder
        # when texts were last embedded without an error: load has just done so, unless the model is not open yet
        self.embedded_at: float = math.inf
        if embedder is not None and embedder.is_open:
            self.embedded_at = monotonic()

    @property
    def has_model(self) -> bool:
        """Whether texts can be embedded."""
        return self._embedder is not None

    @property
    def embedder(self) -> Embedder:
        """The open model."""
        assert self._embedder is not None  # searches and routes refuse what needs it
        return self._embedder

    async def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        """Return what Embedder.tokenize returns."""
        return self.embedder.tokenize(texts, role)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        """Return what Embedder.embed returns, (n, dim) float32. A check is not refused by a full queue."""
        embeddings = self.embedder.embed(tokens)
        self.embedded_at = monotonic()
        return embeddings

    async def score(self, reranker: "Reranker", pairs: Sequence[TokenIds]) -> "Logits":
        """Return what Reranker.score returns, (n,) float32."""
        return reranker.score(pairs)

    async def run(self, work: Callable[[], Returned], *, rows: int | None = None) -> Returned:
        """Return what `work` returns; rows is how many rows of a corpus it reads, None if that is not known."""
        return work()

    async def wait(self, work: Callable[[], Returned]) -> Returned:
        """Return what `work` returns; it spends its time waiting for another machine."""
        return work()


class BatchedExecutor(Executor):
    """Embeds the texts of several searches together, before the searches ask for them one by one."""

    def __init__(self, embedder: Embedder, texts: Sequence[str], run: RunBatches) -> None:
        """Embed the texts of queries; `run` is that of `Embedder.embed`."""
        super().__init__(embedder)
        different = list(dict.fromkeys(texts))
        tokens = embedder.tokenize(different, role="query") if different else []
        self._tokens = dict(zip(different, tokens, strict=True))
        self._embeddings = dict(zip(map(_key, tokens), embedder.embed(tokens, run), strict=True))

    async def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        """Return the tokens of texts, which are known for those of the queries."""
        if all(text in self._tokens for text in texts):
            return [self._tokens[text] for text in texts]
        return await super().tokenize(texts, role)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        """Return embeddings, (n, dim) float32, which are known for the texts of the queries."""
        if all(_key(text) in self._embeddings for text in tokens):
            return np.stack([self._embeddings[_key(text)] for text in tokens])
        return await super().embed(tokens)


def finish(work: Awaitable[Returned]) -> Returned:
    """Return the result of a coroutine that never suspends, without an event loop."""
    try:
        next(iter(work.__await__()))
    except StopIteration as finished:
        result: Returned = finished.value
        return result
    raise AssertionError("an Executor does not wait")


def _key(tokens: TokenIds) -> tuple[int, ...]:
    return tuple(tokens.ids)
