"""The search of a bundle whose texts are in Amazon S3 Vectors. Imported for such a bundle only."""

from function.engine.loading import LoadedModel
from function.engine.metadata.filters import FilterError
from function.engine.metadata.vector_filters import translate
from function.engine.semantic.index import MOST_HITS
from function.executor import Executor
from function.s3vectors.client import VectorsClient, VectorsError
from function.search.query import BackendError, Found, Lap, Query, Search, SearchError, embed_query, filter_error

IN_S3_VECTORS = (
    "the texts are in S3 Vectors, which knows only embeddings and looks only where the best texts probably are"
)


def make_vectors_search(bundle: LoadedModel, executor: Executor) -> Search:
    """Return the search of the index in Amazon S3 Vectors that the manifest names."""
    assert bundle.manifest.index is not None
    assert bundle.manifest.index.vectors is not None
    kinds, client = bundle.manifest.index.columns, VectorsClient(bundle.manifest.index.vectors)

    async def search(query: Query, lap: Lap) -> Found:
        if query.mode != "semantic":
            raise SearchError(f"mode: found {query.mode!r}, expected 'semantic'; {IN_S3_VECTORS}")
        if query.fusion_weight is not None:
            raise SearchError(f"fusion_weight: found {query.fusion_weight}, expected none; {IN_S3_VECTORS}")
        for field in ("exact", "id", "sort", "facets"):
            if value := getattr(query, field):
                raise SearchError(f"{field}: found {value!r}, expected none; {IN_S3_VECTORS}")
        if query.text is None:
            raise SearchError(f"text: missing; {IN_S3_VECTORS}")
        if query.offset + query.num_results > MOST_HITS:
            raise SearchError(f"offset: expected at most {MOST_HITS} together with num_results; {IN_S3_VECTORS}")
        condition = None
        if query.filter is not None:
            given = query.filter
            try:
                condition = await executor.run(lambda: translate(given, kinds), is_long=True)
            except FilterError as error:
                raise filter_error(error, kinds) from None
            lap("filter")
        embedding, is_truncated = await embed_query(executor, query.text, lap)
        try:
            count = query.num_results if query.is_plain else MOST_HITS
            hits = await executor.wait(lambda: client.query(embedding, count, condition))
        except VectorsError as error:
            raise BackendError(str(error), error.seconds) from error
        finally:
            lap("search")
        if not query.is_plain:
            from function.search.refinements import refine_hits  # most queries do not need it

            hits = await executor.run(lambda: refine_hits(bundle, hits, query), is_long=True)
        left_out = {"text", "metadata"}.difference(query.include)
        for hit in hits:
            for name in left_out:
                del hit[name]
        return Found(hits, is_truncated)

    return search
