"""Filters of `Search.search`, built from the filters of LangChain, LlamaIndex and Haystack."""

from collections.abc import Mapping, Sequence
from typing import Any

SearchFilter = dict[str, Any]


def both(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> SearchFilter | None:
    """Return the filter that keeps the rows that pass both filters; None and {} keep all rows."""
    given = [condition for condition in (first, second) if condition]
    if not given:
        return None
    return {"$and": given}


def untranslated(found: object, known: Sequence[str]) -> ValueError:
    """Return the error for an operator without a translation."""
    return ValueError(f"filter: expected one of the operators {', '.join(known)}, found {found}")
