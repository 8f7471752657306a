"""LlamaIndex's retriever over a bundle or a URL."""

import asyncio
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from semsearch.client import Search


class LlamaIndexRetriever(BaseRetriever):  # type: ignore[misc]  # its types are not installed
    """Returns nodes with their id, metadata and score, for a Search and arguments of its search."""

    def __init__(self, searcher: Search, **arguments: Any) -> None:
        super().__init__()
        self._searcher, self._arguments = searcher, arguments

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._searcher.search(query_bundle.query_str, **self._arguments)
        nodes = (TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata) for hit in hits)
        return [NodeWithScore(node=node, score=hit.score) for node, hit in zip(nodes, hits, strict=True)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
