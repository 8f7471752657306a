"""Our filters as those of Amazon S3 Vectors: the same grammar, and the same rows wherever its page leaves room.

Its page does not say what `$ne` and `$nin` do with vectors that lack the key, nor what `$ne` does with an array. So
both are written in a form that leaves no doubt. Dates are numbers there, microseconds since 1970. Rows with an empty
list name the column in EMPTY, since an array without elements matches nothing.
S3 Vectors compares only numbers with $gt, $gte, $lt and $lte: those filters over other columns are refused. It has no
$not, so the filter inside $not becomes its opposite. $startsWith and comparisons have none, and are refused there. So
are filters with more constraints than it takes.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from semsearch.aws.s3vectors.vectors import EMPTY, LARGEST_NUMBER, metadata_value
from semsearch.engine.metadata.columns import COMPARED, LIST_TYPES, STRING_TYPES, Stored
from semsearch.engine.metadata.filters import Condition, FilterError, Parsed, read_filter

COMPARABLE = ("number", "date")
BEYOND = LARGEST_NUMBER + 2
MOST_CONSTRAINTS = 100
OPPOSITES = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in", "$and": "$or", "$or": "$and"}

Filter = dict[str, Any]


def translate(condition: Filter, kinds: Mapping[str, str]) -> Filter | None:
    """Return the filter of S3 Vectors that keeps the same rows; kinds are the columns' types. None keeps all rows.

    Raises FilterError where `allowed_rows` does, if a column cannot be compared there, and if the filter has more than
    MOST_CONSTRAINTS.
    """
    found = _both(_all(read_filter(condition, kinds), kinds))
    if found is not None and (count := _constraints(found)) > MOST_CONSTRAINTS:
        counted = "each value, and one or two more of $ne, $nin and $exists"
        raise FilterError("filter", f"at most {MOST_CONSTRAINTS} constraints, as S3 Vectors counts {counted}", count)
    return found


def _constraints(condition: Filter) -> int:
    count = 0
    for name, value in condition.items():
        if name in ("$and", "$or"):
            count += sum(map(_constraints, value))
        else:
            count += sum(len(operand) if isinstance(operand, list) else 1 for operand in value.values())
    return count


def _all(parsed: Parsed, kinds: Mapping[str, str]) -> list[Filter]:
    if isinstance(parsed, Condition):
        if parsed.operand == []:
            return _of_empty_list(parsed)
        return [_operator(parsed, kinds[parsed.name])]
    name, parts = parsed
    if name == "$not":
        return _all(_negated(parts[0]), kinds)
    found = [_all(part, kinds) for part in parts]
    if name == "$and":
        return list(chain.from_iterable(found))
    # an empty filter keeps all rows, and so does $or with one
    if all(found):
        return [_any([_both(part) or {} for part in found])]
    return []


def _of_empty_list(condition: Condition) -> list[Filter]:
    """Return the filters that keep no row for $in and all rows for $nin. S3 Vectors refuses an empty list."""
    if condition.operator == "$nin":
        return []
    return [{condition.name: {"$exists": True}}, {condition.name: {"$exists": False}}]


def _negated(parsed: Parsed) -> Parsed:
    """Return the filter that keeps all other rows."""
    if not isinstance(parsed, Condition):
        name, parts = parsed
        if name == "$not":
            return parts[0]
        return OPPOSITES[name], [_negated(part) for part in parts]
    if parsed.operator == "$exists":
        return replace(parsed, operand=not parsed.operand)
    if parsed.operator not in OPPOSITES:
        others = "$eq, $ne, $in, $nin or $exists within $not, since S3 Vectors cannot negate other operators"
        raise FilterError(parsed.where, others, parsed.operator)
    return replace(parsed, operator=OPPOSITES[parsed.operator])


def _operator(condition: Condition, kind: str) -> Filter:
    name, operator, operand = condition.name, condition.operator, condition.operand
    if operator in COMPARED and kind not in COMPARABLE:
        others = "$eq, $ne, $in, $nin or $exists"
        if kind in STRING_TYPES:
            others = "$eq, $ne, $in, $nin, $startsWith or $exists"
        expected = f"{others}, since S3 Vectors compares only numbers and dates, not the type {kind}"
        raise FilterError(condition.where, expected, operator)
    if operator == "$exists":
        return _exists(name, kind, bool(operand))
    if operator == "$startsWith" and not operand:  # its page does not say whether it may be empty
        return {name: {"$exists": True}}
    value: Any
    value = [_value(kind, each) for each in operand] if isinstance(operand, list) else _value(kind, operand)
    if operator == "$ne" and kind in LIST_TYPES:
        operator, value = "$nin", [value]
    found = {name: {operator: value}}
    if operator in ("$ne", "$nin"):
        return _any([found, {name: {"$exists": False}}])
    return found


def _value(kind: str, operand: Stored) -> str | int | float | bool:
    """Return a value as S3 Vectors compares it.

    No vector has a number beyond LARGEST_NUMBER. One float64 beyond it compares with all of them as larger numbers do,
    and is not rounded.
    """
    value = metadata_value(kind, operand)
    if isinstance(value, str):
        return value
    if abs(value) <= LARGEST_NUMBER:
        return value
    if value > 0:
        return BEYOND
    return -BEYOND


def _exists(name: str, kind: str, wanted: bool) -> Filter:
    found = {name: {"$exists": wanted}}
    if kind not in LIST_TYPES:
        return found
    if wanted:
        return _any([found, {EMPTY: {"$eq": name}}])
    return {"$and": [found, _any([{EMPTY: {"$exists": False}}, {EMPTY: {"$nin": [name]}}])]}


def _both(filters: list[Filter]) -> Filter | None:
    if not filters:
        return None
    if len(filters) == 1:
        return filters[0]
    return {"$and": filters}


def _any(filters: list[Filter]) -> Filter:
    if len(filters) > 1:
        return {"$or": filters}
    return filters[0]
