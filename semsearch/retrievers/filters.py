"""Filters of `Search.search`, built from the filters of LangChain, LlamaIndex and Haystack.

docs/api.md describes the grammar. It has no operator that negates a filter, so `negated` replaces each operator by its
opposite.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SearchFilter = dict[str, Any]

OPPOSITES = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in", "$and": "$or", "$or": "$and"}


def negated(condition: SearchFilter) -> SearchFilter:
    """Return the filter that keeps all other rows.

    condition is $and or $or with a list of such filters, or one column with one operator. Raises ValueError for $gt,
    $gte, $lt and $lte: a row without a value passes neither such a comparison nor its opposite.
    """
    ((name, value),) = condition.items()
    if name in ("$and", "$or"):
        return {OPPOSITES[name]: [negated(part) for part in value]}
    ((operator, operand),) = value.items()
    if operator == "$exists":
        return {name: {"$exists": not operand}}
    if operator not in OPPOSITES:
        raise ValueError(
            f"filter of {name!r}: expected no comparison of greater and less inside a NOT, found {operand!r}; "
            "use the opposite comparison without the NOT"
        )
    return {name: {OPPOSITES[operator]: operand}}


def none_of(conditions: Sequence[SearchFilter]) -> SearchFilter:
    """Return the filter that keeps the rows that pass none of the conditions. Raises ValueError as `negated` does."""
    return {"$and": [negated(condition) for condition in conditions]}


def both(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> SearchFilter | None:
    """Return the filter that keeps the rows that pass both filters; None and {} keep all rows."""
    given = [condition for condition in (first, second) if condition]
    if not given:
        return None
    return {"$and": given}


def untranslated(found: object, known: Sequence[str]) -> ValueError:
    """Return the error for an operator without a translation."""
    return ValueError(f"filter: expected one of the operators {', '.join(known)}, found {found}")
