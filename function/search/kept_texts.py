"""The search of a bundle that keeps its texts, columns and keywords, while its vectors are in Amazon S3 Vectors.

It is the search of function/search/search.py, over an index that sends requests. Imported for such a bundle only.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from function.engine.embedder import TokenIds
from function.engine.loading import LoadedTexts
from function.engine.quantization import Embeddings
from function.engine.semantic.index import MOST_HITS
from function.engine.semantic.remote_index import Condition, RemoteIndex
from function.executor import Executor, Result
from function.s3vectors.client import VectorsClient, VectorsError
from function.search.query import BackendError, Found, Lap, Query, Search, SearchError

if TYPE_CHECKING:
    from function.engine.metadata.columns import Mask
    from function.engine.rerank.reranker import Logits, Reranker

IndexOfQuery = Callable[[Query, "Mask | None"], RemoteIndex]
MakeSearch = Callable[[LoadedTexts, IndexOfQuery, Executor], Search]
IN_S3_VECTORS = "the embeddings are in S3 Vectors, which looks only where the best texts probably are"


def make_kept_search(bundle: LoadedTexts, executor: Executor, make: MakeSearch) -> Search:
    """Return the search that `make` makes over the index of S3 Vectors that the manifest names."""
    info = bundle.manifest.index
    assert info is not None
    assert info.vectors is not None
    client, kinds = VectorsClient(info.vectors), info.columns

    def index_of(query: Query, allowed: "Mask | None") -> RemoteIndex:
        def condition() -> Condition | None:
            """Return the query's filter for the service, None if there is none or if the service cannot apply it."""
            if query.filter is None:
                return None
            from function.engine.metadata.filters import FilterError  # only a query with a filter needs them
            from function.engine.metadata.vector_filters import translate

            try:
                return translate(query.filter, kinds)
            except FilterError:
                return None

        return RemoteIndex(client, len(bundle.passages), allowed, condition)

    found = make(bundle, index_of, _WaitingExecutor(executor))

    async def search(query: Query, lap: Lap) -> Found:
        _check_fields(query)
        try:
            return await found(query, lap)
        except VectorsError as error:
            raise BackendError(str(error), error.seconds) from error

    return search


def _check_fields(query: Query) -> None:
    """Raise SearchError for what S3 Vectors cannot do."""
    if query.mode == "keyword" or (query.text is None and query.id is None):
        return
    if query.exact:
        raise SearchError(f"exact: found True, expected False; {IN_S3_VECTORS}")
    if (last := query.offset + query.num_results) > MOST_HITS:
        found = f"{query.offset}, with num_results {last}"
        raise SearchError(f"offset: found {found}, expected at most {MOST_HITS} together; {IN_S3_VECTORS}")


class _WaitingExecutor:
    """Runs all work of a search where it can wait for a reply of S3 Vectors."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.embedded_at = executor.embedded_at  # no search reads it

    async def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        return await self._executor.tokenize(texts, role)

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        return await self._executor.embed(tokens, is_check=is_check)

    async def score(self, reranker: "Reranker", pairs: Sequence[TokenIds]) -> "Logits":
        return await self._executor.score(reranker, pairs)

    async def run(self, work: Callable[[], Result], *, is_long: bool = False) -> Result:
        return await self._executor.wait(work)

    async def wait(self, work: Callable[[], Result]) -> Result:
        return await self._executor.wait(work)
