"""The search of a bundle whose texts and embeddings are in Amazon S3 Vectors.

S3 Vectors applies the filter, ranks the vectors, and returns the texts of the best ones. It returns at most MOST_HITS,
so pages and groups reach only as far as these.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from semsearch.aws.s3vectors.client import ServiceFilter, VectorsClient
from semsearch.engine.bundle import VectorsInfo
from semsearch.engine.hits import MOST_HITS, Hit
from semsearch.engine.loading import AnyBundle
from semsearch.engine.passages import Passage
from semsearch.search.executor import Executor
from semsearch.search.query import FLOOR, LONGEST_FOUND, NEED_TEXTS, Lap, Query, SearchError, filter_error
from semsearch.search.results import Found, show_hit
from semsearch.search.search import Embedded, check_without_model, embed_text, floor_of

if TYPE_CHECKING:
    from semsearch.search.reply_types import GroupResult

THERE = "the texts are in S3 Vectors, which knows only embeddings and looks only where the best texts probably are"


class FetchedPassages(dict[int, Passage]):
    """Passages that S3 Vectors returned, by their rows, read as those of a bundle are."""

    def id(self, row: int) -> str:
        """Return the id of one row."""
        return self[row].id

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return self[row].text

    def source(self, row: int) -> str:
        """Return the text of one row: S3 Vectors does not have its markup."""
        return self[row].text

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        return self[row].metadata

    def lines(self, row: int) -> None:
        """Return None: S3 Vectors does not have the lines of the texts."""


class RemoteSearch:
    """Embeds the text of a query here, and lets S3 Vectors find the rest."""

    def __init__(self, bundle: AnyBundle, vectors: VectorsInfo, executor: Executor) -> None:
        """Take a bundle and where its texts are. The first query connects."""
        self._bundle, self._executor = bundle, executor
        self._corpus = bundle.manifest.corpus
        self._client = VectorsClient(vectors)

    async def search(self, query: Query, lap: Lap) -> Found:
        """Return what a query finds, calling `lap` at the end of each phase.

        Raises SearchError for what S3 Vectors cannot do, and BackendError if it fails.
        """
        least, condition = self._check(query)
        embedded = await self._embed(query)
        lap("embed")
        found = await self._executor.wait(partial(self._find, query, embedded, least, condition))
        lap("search")
        return found

    async def _embed(self, query: Query) -> Embedded:
        if query.vector is not None:
            from semsearch.search.vector import normalized  # most queries have none

            return Embedded(normalized(query.vector, self._bundle.manifest.model.dim))
        assert query.text is not None  # `_check` has checked it
        return await embed_text(query.text, query, self._bundle, self._executor)

    def _check(self, query: Query) -> tuple[float | None, ServiceFilter | None]:
        """Return the least score and the filter for S3 Vectors. Raises SearchError for what it cannot do."""
        if query.mode not in (None, "semantic"):
            raise SearchError(f"mode: found {query.mode!r}, expected 'semantic'; {THERE}")
        for field in NEED_TEXTS:
            if value := getattr(query, field):
                found = repr(list(value) if isinstance(value, tuple) else value)[:LONGEST_FOUND]
                raise SearchError(f"{field}: found {found}, expected none; {THERE}")
        if query.vector is not None:
            from semsearch.search.vector import check_fields

            check_fields(query)
        elif query.text is None:
            raise SearchError(f"text: missing; expected a text or a vector; {THERE}")
        if self._bundle.embedder is None:
            check_without_model(query, False, self._bundle.manifest.model)
        if query.exact:
            raise SearchError(f"exact: found True, expected False; {THERE}")
        if (last := query.offset + query.num_results) > MOST_HITS:
            found = f"{query.offset}, with num_results {last}"
            raise SearchError(f"offset: found {found}, expected at most {MOST_HITS} together; {THERE}")
        if query.group_by is not None:
            from semsearch.search.refinements import STRINGS, check_column  # only such a query needs them

            check_column("group_by", query.group_by, self._corpus.columns, STRINGS)
        least = query.min_score
        if least == FLOOR:
            least = floor_of(query, "semantic", self._corpus)
        return None if least is None else float(least), self._translated(query)

    def _translated(self, query: Query) -> ServiceFilter | None:
        if query.filter is None:
            return None
        from semsearch.aws.s3vectors.filters import translate
        from semsearch.engine.metadata.filters import FilterError  # only a query with a filter needs them

        try:
            return translate(query.filter, self._corpus.columns)
        except FilterError as error:
            raise filter_error(error, self._corpus.columns) from None

    def _find(self, query: Query, embedded: Embedded, least: float | None, condition: ServiceFilter | None) -> Found:
        assert embedded.embedding is not None  # the mode is semantic
        count = query.num_results
        if query.offset or query.group_by is not None:
            count = MOST_HITS  # pages and groups are always taken from the same hits
        found, passages = [], FetchedPassages()
        for page in self._client.nearest(embedded.embedding, min(count, self._corpus.rows), condition):
            for row, score, passage in page:
                passages[row] = passage
                if least is None or score >= least:
                    found.append(Hit(row, score))
        found.sort(key=lambda hit: (-hit.score, hit.row))  # equal ones in the order of the corpus
        if query.group_by is not None:
            results = self._groups(found, passages, query, query.group_by)
        else:
            results = self._show(found[query.offset : query.offset + query.num_results], passages, query)
        return Found(results, embedded.is_truncated, queries=embedded.by)

    def _groups(self, hits: list[Hit], passages: FetchedPassages, query: Query, column: str) -> "list[GroupResult]":
        groups: dict[object, list[Hit]] = {}
        for hit in hits:
            groups.setdefault(passages.metadata(hit.row).get(column, hit.row), []).append(hit)
        results: list[GroupResult] = []
        for value, all_hits in list(groups.items())[query.offset : query.offset + query.num_results]:
            best, *others = self._show(all_hits[: query.group_size], passages, query)
            group = value if isinstance(value, str) else None
            best["group"] = group
            best["other_passages"] = others
            results.append(best)
        return results

    def _show(self, hits: list[Hit], passages: FetchedPassages, query: Query) -> "list[GroupResult]":
        results = [show_hit(passages, hit, query.include) for hit in hits]
        if query.highlights:
            from semsearch.search.refinements import add_highlights  # only such a query needs it

            texts = [passages.text(hit.row) for hit in hits]
            add_highlights(self._bundle, results, texts, query.text, "semantic")
        return results
