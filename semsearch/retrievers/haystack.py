"""Haystack's component over a bundle or a URL."""

from collections.abc import Mapping, Sequence
from typing import Any

from haystack import Document, component
from haystack.utils import Secret

from semsearch.client import Search
from semsearch.retrievers.filters import SearchFilter, both, untranslated

HAYSTACK_CONDITIONS = ("AND", "OR", "NOT")
HAYSTACK_OPERATORS = {
    "==": "$eq",
    "!=": "$ne",
    ">": "$gt",
    ">=": "$gte",
    "<": "$lt",
    "<=": "$lte",
    "in": "$in",
    "not in": "$nin",
}


@component
class HaystackRetriever:
    """Returns up to `top_k` documents with their id, metadata (`meta`) and score. A pipeline with it can be saved.

    `filters` are Haystack's. `arguments` are those of `Search.search`; documents must pass its `filter` too.
    A program that loads a saved pipeline must allow the module: `Pipeline.load(file, allowed_modules=["semsearch"])`.
    """

    def __init__(
        self,
        place: str,
        api_key: Secret | None = None,
        region: str | None = None,
        top_k: int = 5,
        filters: dict[str, Any] | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Take place, key and region as Search does.

        A saved pipeline contains each argument. For a secret, it contains the name of its variable.

        Raises ValueError if the variable of the secret is not set.
        """
        self.place = place
        self.api_key = api_key
        self.region = region
        self.top_k = top_k
        self.filters = filters
        self.arguments = arguments
        key = None
        if api_key is not None:
            key = api_key.resolve_value()
        self._search = Search(place, key=key, region=region)

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the documents for a query. Filters, top_k and each of the arguments replace those of the constructor.

        Raises ValueError for filters that Haystack does not specify.
        """
        chosen = (self.arguments or {}) | (arguments or {})
        filters = filters or self.filters
        if filters:
            chosen["filter"] = both(chosen.get("filter"), translated(filters))
        if top_k is None:
            top_k = self.top_k
        hits = self._search.search(query, top_k=top_k, **chosen)
        documents = [Document(id=hit.id, content=hit.text, meta=hit.metadata, score=hit.score) for hit in hits]
        return {"documents": documents}


def translated(filters: Mapping[str, Any]) -> SearchFilter:
    """Return Haystack's filters as a filter of Search. Raises ValueError as `run` does."""
    try:
        if "field" in filters:
            return _compared(filters["field"].removeprefix("meta."), filters["operator"], filters["value"])
        return _combined(filters["operator"], filters["conditions"])
    except KeyError as error:
        raise ValueError(f"filters: expected an object with {error}, found {filters!r}") from None


def _combined(operator: str, conditions: Sequence[Mapping[str, Any]]) -> SearchFilter:
    parts = [translated(condition) for condition in conditions]
    match operator:
        case "AND" | "OR":
            return {f"${operator.lower()}": parts}
        case "NOT":  # negates all conditions together
            return {"$not": {"$and": parts}}
    raise untranslated(repr(operator), HAYSTACK_CONDITIONS)


def _compared(name: str, operator: str, value: Any) -> SearchFilter:
    if operator not in HAYSTACK_OPERATORS:
        raise untranslated(f"{operator!r} of {name!r}", list(HAYSTACK_OPERATORS))
    if value is None and operator in ("==", "!="):
        return {name: {"$exists": operator == "!="}}
    return {name: {HAYSTACK_OPERATORS[operator]: value}}
