"""The search of a bundle whose texts are in Amazon S3 Vectors. Imported for such a bundle only."""

from function.engine.loading import LoadedModel
from function.engine.metadata.filters import FilterError
from function.engine.metadata.vector_filters import translate
from function.engine.semantic.index import MOST_HITS
from function.executor import Executor
from function.s3vectors.client import VectorsClient, VectorsError
from function.search.query import (
    LONGEST_FOUND,
    BackendError,
    Found,
    Lap,
    Query,
    Search,
    SearchError,
    embed_query,
    filter_error,
)

IN_S3_VECTORS = (
    "the texts are in S3 Vectors, which knows only embeddings and looks only where the best texts probably are"
)


def make_vectors_search(bundle: LoadedModel, executor: Executor) -> Search:
    """Return the search of the index in Amazon S3 Vectors that the manifest names."""
    assert bundle.manifest.index is not None
    assert bundle.manifest.index.vectors is not None
    kinds, client = bundle.manifest.index.columns, VectorsClient(bundle.manifest.index.vectors)

    async def search(query: Query, lap: Lap) -> Found:
        text = _supported_text(query)
        if query.group_by is not None:
            from function.search.refinements import STRINGS, check_column  # most queries do not need it

            check_column("group_by", query.group_by, kinds, STRINGS)
        condition = None
        if query.filter is not None:
            given = query.filter
            try:
                condition = await executor.run(lambda: translate(given, kinds), is_long=True)
            except FilterError as error:
                raise filter_error(error, kinds) from None
            lap("filter")
        embedding, is_truncated = await embed_query(executor, text, lap)
        # pages and groups are always taken from the same hits
        count = MOST_HITS if query.offset or query.group_by is not None else query.num_results
        try:
            hits = await executor.wait(lambda: client.query(embedding, count, condition))
        except VectorsError as error:
            raise BackendError(str(error), error.seconds) from error
        finally:
            lap("search")
        if not query.is_plain:
            from function.search.refinements import refine_hits

            hits = await executor.run(lambda: refine_hits(bundle, hits, query), is_long=True)
        left_out = {"text", "metadata"}.difference(query.include)
        for hit in hits:
            for each in (hit, *hit.get("other_passages", ())):
                for name in left_out:
                    del each[name]
        return Found(hits, is_truncated)

    return search


def _supported_text(query: Query) -> str:
    """Return the text of a query. Raises SearchError for what S3 Vectors cannot do."""
    if query.mode not in (None, "semantic"):
        raise SearchError(f"mode: found {query.mode!r}, expected 'semantic'; {IN_S3_VECTORS}")
    if query.exact:
        raise SearchError(f"exact: found True, expected False; {IN_S3_VECTORS}")
    if query.fusion_weight is not None:
        raise SearchError(f"fusion_weight: found {query.fusion_weight}, expected none; {IN_S3_VECTORS}")
    for field in ("id", "sort", "facets", "rerank"):
        if value := getattr(query, field):
            raise SearchError(f"{field}: found {repr(value)[:LONGEST_FOUND]}, expected none; {IN_S3_VECTORS}")
    if query.text is None:
        raise SearchError(f"text: missing; expected a text; {IN_S3_VECTORS}")
    if (last := query.offset + query.num_results) > MOST_HITS:
        found = f"{query.offset}, with num_results {last}"
        raise SearchError(f"offset: found {found}, expected at most {MOST_HITS} together; {IN_S3_VECTORS}")
    return query.text
