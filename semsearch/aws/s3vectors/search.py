"""The search of a bundle whose embeddings are in Amazon S3 Vectors, and perhaps its texts too."""

from collections.abc import Callable
from typing import TypeVar

from semsearch.aws.s3vectors.client import VectorsClient
from semsearch.aws.s3vectors.index import KEYS_PER_REPLY, MOST_RANKED, RemoteIndex
from semsearch.engine.hits import MOST_HITS, Mask
from semsearch.engine.loading import Loaded
from semsearch.engine.passages import PassageReader
from semsearch.engine.semantic.index import Index
from semsearch.search.executor import Executor
from semsearch.search.query import LONGEST_FOUND, Query, SearchError, filter_error
from semsearch.search.search import BundleSearch

Returned = TypeVar("Returned")

EMBEDDINGS_THERE = "the embeddings are in S3 Vectors, which looks only where the best texts probably are"
TEXTS_THERE = (
    "the texts are in S3 Vectors, which knows only embeddings and looks only where the best texts probably are"
)


class RemoteSearch(BundleSearch):
    """Searches with an index of its own for each query. All work of a search runs where it can wait for S3 Vectors."""

    def __init__(self, bundle: Loaded, executor: Executor) -> None:
        """Take a bundle that names an index of S3 Vectors. The first query connects."""
        super().__init__(bundle, executor)
        self._corpus = bundle.manifest.corpus
        assert self._corpus.vectors is not None  # otherwise the embeddings are in the bundle
        self._has_texts_there = not self._corpus.vectors.keeps_texts
        self._client = VectorsClient(self._corpus.vectors)

    async def _run(self, work: Callable[[], Returned], rows: int | None) -> Returned:
        return await self._executor.wait(work)

    def _with_mode(self, query: Query) -> Query:
        query = super()._with_mode(query)
        self._check(query)
        return query

    def _check(self, query: Query) -> None:
        """Raise SearchError for what S3 Vectors cannot do."""
        there = TEXTS_THERE if self._has_texts_there else EMBEDDINGS_THERE
        if self._has_texts_there:
            if query.mode != "semantic":
                raise SearchError(f"mode: found {query.mode!r}, expected 'semantic'; {there}")
            for field in ("id", "sort", "facets", "boost"):
                if value := getattr(query, field):
                    found = repr(list(value) if isinstance(value, tuple) else value)[:LONGEST_FOUND]
                    raise SearchError(f"{field}: found {found}, expected none; {there}")
            if query.text is None:
                raise SearchError(f"text: missing; expected a text; {there}")
        if query.mode == "keyword" or (query.text is None and query.id is None):
            return
        if query.exact:
            raise SearchError(f"exact: found True, expected False; {there}")
        if (last := query.offset + query.num_results) > MOST_HITS:
            found = f"{query.offset}, with num_results {last}"
            raise SearchError(f"offset: found {found}, expected at most {MOST_HITS} together; {there}")

    def _vectors(self, query: Query, filtered: Mask | None) -> tuple[Index, PassageReader]:
        """Return the index and the passages for a query; filtered (rows,) bool has the rows that its filter keeps.

        Raises SearchError for a filter that cannot be used.
        """
        condition = None
        if query.filter is not None:
            from semsearch.aws.s3vectors.filters import translate
            from semsearch.engine.metadata.filters import FilterError  # only a query with a filter needs them

            try:
                condition = translate(query.filter, self._corpus.columns)
            except FilterError as error:
                if self._has_texts_there:
                    raise filter_error(error, self._corpus.columns) from None
        page, most = KEYS_PER_REPLY, MOST_RANKED
        if self._has_texts_there:
            most = MOST_HITS
            if not query.offset and query.group_by is None:
                page = 1  # pages and groups are always taken from the same hits
        index = RemoteIndex(
            self._client, self._corpus.rows, filtered, condition, page, most, has_texts=self._has_texts_there
        )
        texts = self._bundle.texts
        return index, index.passages if texts is None else texts.passages
