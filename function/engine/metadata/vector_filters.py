"""Our filters as those of Amazon S3 Vectors: the same grammar, and the same rows wherever its page leaves room.

Its page does not say what `$ne` and `$nin` do with vectors that lack the key, nor what `$ne` does with an array. So
both are written in a form that leaves no doubt. Dates are numbers there, microseconds since 1970. Rows with an empty
list name the column in EMPTY, since an array without elements matches nothing.
S3 Vectors compares only numbers with $gt, $gte, $lt and $lte: those filters over other columns are refused. So are
filters with more constraints than it takes.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from function.engine.metadata.columns import COMPARED, Columns, Mask, stored_value
from function.engine.metadata.filters import STRINGS, FilterError, allowed_rows
from function.engine.semantic.s3_vectors import EMPTY, LARGEST_NUMBER, metadata_value

COMPARABLE = ("number", "date")
BEYOND = LARGEST_NUMBER + 2
MOST_CONSTRAINTS = 100

Filter = dict[str, Any]


def translate(condition: Filter, kinds: Mapping[str, str]) -> Filter | None:
    """Return the filter of S3 Vectors that keeps the same rows; kinds are the columns' types. None keeps all rows.

    Raises FilterError where `allowed_rows` does, if a column cannot be compared there, and if the filter has more than
    MOST_CONSTRAINTS.
    """
    allowed_rows(condition, cast(Columns, _NoRows(kinds)))  # the same errors as those of a corpus in the bundle
    found = _both(_all("filter", condition, kinds))
    if found is not None and (count := _constraints(found)) > MOST_CONSTRAINTS:
        counted = "each value, and one or two more of $ne, $nin and $exists"
        raise FilterError("filter", f"at most {MOST_CONSTRAINTS} constraints, as S3 Vectors counts {counted}", count)
    return found


def _constraints(condition: Filter) -> int:
    """Return how many constraints S3 Vectors counts in a filter: each value that is compared."""
    count = 0
    for name, value in condition.items():
        if name in ("$and", "$or"):
            count += sum(map(_constraints, value))
        else:
            count += sum(len(operand) if isinstance(operand, list) else 1 for operand in value.values())
    return count


def _all(where: str, condition: Filter, kinds: Mapping[str, str]) -> list[Filter]:
    """Return filters that must all hold."""
    found: list[Filter] = []
    for name, value in condition.items():
        if name in ("$and", "$or"):
            parts = [_all(f"{where}.{name}.{place}", each, kinds) for place, each in enumerate(value)]
            if name == "$and":
                found += [each for part in parts for each in part]
            elif all(parts):  # an empty filter keeps all rows, and so does $or with one
                found.append(_any([_both(part) or {} for part in parts]))
        else:
            operators = value if isinstance(value, dict) else {"$eq": value}
            found += [
                _operator(f"{where}.{name}.{operator}", name, kinds[name], operator, operand)
                for operator, operand in operators.items()
            ]
    return found


def _operator(where: str, name: str, kind: str, operator: str, operand: Any) -> Filter:
    if operator in COMPARED and kind not in COMPARABLE:
        others = "$eq, $ne, $in, $nin, $startsWith or $exists" if kind in STRINGS else "$eq, $ne, $in, $nin or $exists"
        raise FilterError(where, f"{others}, since S3 Vectors compares only numbers and dates, not a {kind}", operator)
    if operator == "$exists":
        return _exists(name, kind, operand)
    if operator == "$startsWith" and not operand:  # its page does not say whether it may be empty
        return {name: {"$exists": True}}
    if operator in ("$in", "$nin"):
        value: Any = [_value(kind, each) for each in operand]
    else:
        value = _value(kind, operand)
    if operator == "$ne" and kind == "list":
        operator, value = "$nin", [value]
    found = {name: {operator: value}}
    return _any([found, {name: {"$exists": False}}]) if operator in ("$ne", "$nin") else found


def _value(kind: str, operand: object) -> str | int | float | bool:
    """Return a value as S3 Vectors compares it.

    No vector has a number beyond LARGEST_NUMBER. One float64 beyond it compares with all of them as larger numbers do,
    and is not rounded.
    """
    value = metadata_value(kind, stored_value(kind, operand))
    if isinstance(value, str):
        return value
    if abs(value) <= LARGEST_NUMBER:
        return value
    return BEYOND if value > 0 else -BEYOND


def _exists(name: str, kind: str, wanted: bool) -> Filter:
    found = {name: {"$exists": wanted}}
    if kind != "list":
        return found
    if wanted:
        return _any([found, {EMPTY: {"$eq": name}}])
    return {"$and": [found, _any([{EMPTY: {"$exists": False}}, {EMPTY: {"$nin": [name]}}])]}


def _both(filters: list[Filter]) -> Filter | None:
    return {"$and": filters} if len(filters) > 1 else filters[0] if filters else None


def _any(filters: list[Filter]) -> Filter:
    return {"$or": filters} if len(filters) > 1 else filters[0]


class _NoRows:
    """The columns of a corpus without rows, to check a filter with."""

    count = 0

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def __getitem__(self, name: str) -> "_NoRows":
        return self

    def exists(self) -> Mask:
        return np.zeros(0, np.bool_)

    def compare(self, comparison: str, value: object) -> Mask:
        return self.exists()

    def equals_any(self, values: object) -> Mask:
        return self.exists()

    def starts_with(self, start: bytes) -> Mask:
        return self.exists()
