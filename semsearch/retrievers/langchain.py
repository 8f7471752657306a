"""LangChain's retriever over a bundle or a URL."""

import asyncio
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class LangChainRetriever(BaseRetriever):  # type: ignore[misc]  # its types are not installed
    """Returns documents with their id, their metadata and the score in it, for a Search and arguments of its search."""

    searcher: Any  # a Search
    arguments: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **arguments: Any) -> list[Document]:
        hits = self.searcher.search(query, **self.arguments | arguments)
        return [Document(hit.text, id=hit.id, metadata={**hit.metadata, "score": hit.score}) for hit in hits]

    async def _aget_relevant_documents(self, query: str, **arguments: Any) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, **arguments)
