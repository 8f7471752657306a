"""LlamaIndex's retriever over a bundle or a URL."""

import asyncio
from pathlib import Path
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from semsearch.client import Search
from semsearch.retrievers import as_search
from semsearch.retrievers.filters import SearchFilter, both, untranslated

LLAMA_INDEX_OPERATORS = {
    **{"==": "$eq", "!=": "$ne", ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte", "in": "$in", "nin": "$nin"},
    **{"contains": "$eq", "any": "$in"},  # a list passes if one of its items does
}


class LlamaIndexRetriever(BaseRetriever):  # type: ignore[misc]  # its types are not installed
    """Returns up to `similarity_top_k` nodes with their id, metadata and score, found by a Search, or in its place.

    `filters` are LlamaIndex's MetadataFilters. The other arguments are those of `Search.search`. Nodes must pass its
    `filter` too.
    """

    def __init__(
        self,
        searcher: Search | str | Path,
        similarity_top_k: int = 5,
        filters: MetadataFilters | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        self._searcher, self._arguments = as_search(searcher), arguments

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        chosen = dict(self._arguments)
        if self.filters is not None:
            chosen["filter"] = both(chosen.get("filter"), translated(self.filters))
        hits = self._searcher.search(query_bundle.query_str, top_k=self.similarity_top_k, **chosen)
        nodes = (TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata) for hit in hits)
        return [NodeWithScore(node=node, score=hit.score) for node, hit in zip(nodes, hits, strict=True)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def translated(filters: MetadataFilters) -> SearchFilter:
    """Return the filters as a filter of Search.

    Raises ValueError for `text_match` and `text_match_insensitive`, and for `is_empty`,
    because no filter of Search finds empty lists.
    """
    parts = []
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            parts.append(translated(part))
        else:
            parts.append(_compared(part))
    if not parts:
        return {}
    if filters.condition == "not":
        return {"$not": {"$or": parts}}
    if filters.condition == "or":
        return {"$or": parts}
    return {"$and": parts}


def _compared(condition: MetadataFilter) -> SearchFilter:
    operator, name = condition.operator.value, condition.key
    if operator == "all":
        return {"$and": [{name: {"$eq": value}} for value in condition.value]}
    if operator not in LLAMA_INDEX_OPERATORS:
        raise untranslated(f"{operator!r} of {name!r}", [*LLAMA_INDEX_OPERATORS, "all"])
    return {name: {LLAMA_INDEX_OPERATORS[operator]: condition.value}}
