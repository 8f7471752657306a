"""LangChain's retriever over a bundle or a URL."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.structured_query import Comparison, FilterDirective, Operation
from pydantic import AfterValidator, ConfigDict

from semsearch.retrievers import as_search
from semsearch.retrievers.filters import SearchFilter, untranslated

LANGCHAIN_OPERATORS = {
    **{"eq": "$eq", "ne": "$ne", "gt": "$gt", "gte": "$gte", "lt": "$lt", "lte": "$lte", "in": "$in", "nin": "$nin"},
    "contain": "$eq",  # a list passes if one of its items is equal
}


class LangChainRetriever(BaseRetriever):  # type: ignore[misc]  # its types are not installed
    """Returns up to `k` documents with their id and metadata, found by a Search with these arguments of its search.

    `invoke` accepts `k` and further arguments for one query. The argument `filter` can be a filter of Search, or one of
    langchain_core.structured_query. The metadata contain the score as `score`. If one of the documents of a query has a
    column of this name, the score of all of them is called `search_score`. Any other argument of the constructor, such
    as `filter` or `search_kwargs`, is refused.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")  # LangChain would ignore what is unknown

    searcher: Annotated[Any, AfterValidator(as_search)]  # a Search, or the place of one
    k: int = 5
    arguments: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **arguments: Any) -> list[Document]:
        chosen = {"k": self.k, "filter": None, **self.arguments, **arguments}
        chosen["filter"] = translated(chosen["filter"])
        hits = self.searcher.search(query, top_k=chosen.pop("k"), **chosen)
        score = "score"
        while any(score in hit.metadata for hit in hits):
            score = f"search_{score}"
        return [Document(hit.text, id=hit.id, metadata={**hit.metadata, score: hit.score}) for hit in hits]

    async def _aget_relevant_documents(self, query: str, **arguments: Any) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, **arguments)


def translated(condition: FilterDirective | Mapping[str, Any] | None) -> Any:
    """Return a structured query's filter as a filter of Search, and filters of Search as they are.

    Raises ValueError for `like`.
    """
    if isinstance(condition, Operation):
        parts = [translated(part) for part in condition.arguments]
        if condition.operator == "not":
            return {"$not": {"$or": parts}}
        return {f"${condition.operator.value}": parts}
    if isinstance(condition, Comparison):
        return _compared(condition)
    return condition


def _compared(comparison: Comparison) -> SearchFilter:
    operator, value = comparison.comparator.value, comparison.value
    if operator not in LANGCHAIN_OPERATORS:
        raise untranslated(f"{operator!r} of {comparison.attribute!r}", list(LANGCHAIN_OPERATORS))
    if isinstance(value, Mapping):  # LangChain's parser writes dates as {"date": "2024-05-31", "type": "date"}
        value = value[value["type"]]
    return {comparison.attribute: {LANGCHAIN_OPERATORS[operator]: value}}
