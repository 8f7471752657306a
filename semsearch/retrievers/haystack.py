"""Haystack's component over a bundle or a URL."""

from typing import Any

from haystack import Document, component

from semsearch.client import Search


@component
class HaystackRetriever:
    """Returns documents with their id, metadata (`meta`) and score. A pipeline with it can be saved and loaded."""

    def __init__(self, place: str, key: str | None = None, arguments: dict[str, Any] | None = None) -> None:
        """Take place and key as Search does, and arguments of its search."""
        self.place, self.key, self.arguments = place, key, arguments
        self._search = Search(place, key=key)

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the documents for a query; these arguments replace those of the constructor."""
        hits = self._search.search(query, **(self.arguments or {}) | (arguments or {}))
        documents = [Document(id=hit.id, content=hit.text, meta=hit.metadata, score=hit.score) for hit in hits]
        return {"documents": documents}
