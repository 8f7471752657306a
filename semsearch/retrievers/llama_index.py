"""LlamaIndex's retriever over a bundle or a URL."""

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from semsearch.search import Hits, Search


class LlamaIndexRetriever(BaseRetriever):  # type: ignore[misc]  # its types are not installed
    """Returns nodes with their id, metadata and score, for a Search and arguments of its search."""

    def __init__(self, searcher: Search, **arguments: Any) -> None:
        super().__init__()
        self._searcher, self._arguments = searcher, arguments

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._searcher.search(query_bundle.query_str, **self._arguments))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._searcher.asearch(query_bundle.query_str, **self._arguments))


def _nodes(hits: Hits) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata), score=hit.score) for hit in hits
    ]
