"""Filters over metadata: a JSON object in the grammar of S3 Vectors becomes a mask of rows.

    {"category": "WORLD", "year": {"$gte": 2015}, "$or": [{"tags": "sea"}, {"tags": {"$exists": false}}]}

All members of an object must hold. A value without an operator means $eq. A list matches if one of its strings does.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html
Two things go further than that page: dates are a type, and $gt, $gte, $lt and $lte compare every type. $startsWith
compares strings alone, character by character.
It does not say what becomes of rows without a value. As in MongoDB, only $ne, $nin and {"$exists": false} keep them
(https://www.mongodb.com/docs/manual/reference/operator/query/ne/), and a list passes $ne if none of its strings is
equal.
"""

import reprlib
from functools import reduce
from typing import Any

import numpy as np

from function.engine.metadata.columns import COMPARED, EXPECTED, Columns, Mask, Stored, stored_value

OPERATORS = ("$eq", "$ne", *COMPARED, "$in", "$nin", "$startsWith", "$exists")
STRINGS = ("string", "list")  # types of columns whose values are strings
MOST_LEVELS = 8  # maximum depth of filters within filters
MOST_VALUES = 1_000  # maximum values of a filter; each takes a pass over the rows, and 6 MB of JSON can hold millions


class FilterError(ValueError):
    """A filter that cannot be used: `where` in it, what was `expected` there and what was `found`."""

    def __init__(self, where: str, expected: str, found: object) -> None:
        super().__init__(f"{where}: expected {expected}, found {reprlib.repr(found)}")  # it may be nested deeply
        self.where = where
        self.expected = expected
        self.found = found


def allowed_rows(condition: dict[str, Any], columns: Columns) -> Mask:
    """Return the rows that a filter keeps, (rows,) bool. Only the columns that it names are read.

    Raises FilterError if the filter is not in the grammar, names an unknown column, compares with another type or holds
    more than MOST_VALUES values.
    """
    if (count := _count_values(condition)) > MOST_VALUES:
        raise FilterError("filter", f"at most {MOST_VALUES} values, lists and objects included", count)
    return _all_hold("filter", condition, columns, level=1)


def _count_values(value: object) -> int:
    """Return how many values a JSON value holds, itself and those of all levels included.

    A number above MOST_VALUES is a lower bound, since counting all values of a large filter takes long.
    """
    pending, count = [value], 0
    while pending and count <= MOST_VALUES:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return count + len(pending)


def _all_hold(where: str, condition: object, columns: Columns, level: int) -> Mask:
    """Return the rows for which all members of a filter hold; all rows if it has none."""
    if not isinstance(condition, dict):
        raise FilterError(where, "an object", condition)
    if level > MOST_LEVELS:
        raise FilterError(where, f"at most {MOST_LEVELS} filters within each other", condition)
    mask = np.ones(columns.count, np.bool_)
    for name, value in condition.items():
        if name in ("$and", "$or"):
            mask &= _combined(f"{where}.{name}", name, value, columns, level)
        elif name in columns.kinds:
            mask &= _column_holds(f"{where}.{name}", name, value, columns)
        else:
            raise FilterError(where, "the name of a column, $and or $or", name)
    return mask


def _combined(where: str, name: str, conditions: object, columns: Columns, level: int) -> Mask:
    """Return the rows for which all filters of a list hold ($and), or at least one of them ($or)."""
    masks = [
        _all_hold(f"{where}.{place}", condition, columns, level + 1)
        for place, condition in enumerate(_list(where, conditions, "filters"))
    ]
    return reduce(np.logical_and if name == "$and" else np.logical_or, masks)


def _column_holds(where: str, name: str, value: object, columns: Columns) -> Mask:
    """Return the rows whose value in one column passes all operators of an object, or equals a value."""
    kind = columns.kinds[name]
    if not isinstance(value, dict):
        return columns[name].equals_any([_operand(where, kind, value, or_operators=True)])
    if not value:
        raise FilterError(where, f"at least one of {', '.join(OPERATORS)}", value)
    return reduce(
        np.logical_and,
        [_operator_holds(f"{where}.{each}", each, operand, name, columns) for each, operand in value.items()],
    )


def _operator_holds(where: str, operator: str, value: object, name: str, columns: Columns) -> Mask:
    """Return the rows whose value in one column passes one operator."""
    kind = columns.kinds[name]
    if operator in COMPARED:
        operand = _operand(where, kind, value)
        return columns[name].compare(operator, operand)
    match operator:
        case "$eq" | "$ne":
            wanted = [_operand(where, kind, value)]
        case "$in" | "$nin":
            several = _list(where, value, "values")
            wanted = [_operand(f"{where}.{place}", kind, each) for place, each in enumerate(several)]
        case "$startsWith":
            return columns[name].starts_with(_start(where, kind, value))
        case "$exists":
            if not isinstance(value, bool):
                raise FilterError(where, "true or false", value)
            return columns[name].exists() if value else ~columns[name].exists()
        case _:
            raise FilterError(where.removesuffix(f".{operator}"), f"one of {', '.join(OPERATORS)}", operator)
    mask = columns[name].equals_any(wanted)
    return mask if operator in ("$eq", "$in") else ~mask


def _operand(where: str, kind: str, value: object, or_operators: bool = False) -> Stored:
    """Return a value as columns of this type store it. Raises FilterError if it is of another type."""
    try:
        return stored_value(kind, value)
    except ValueError:
        expected = f"{EXPECTED[kind]}, or an object of operators" if or_operators else EXPECTED[kind]
        raise FilterError(where, expected, value) from None


def _start(where: str, kind: str, value: object) -> bytes:
    """Return the beginning of a string as UTF-8. Raises FilterError if the column has no strings or this is none."""
    if kind not in STRINGS:
        raise FilterError(where, "a column of strings or lists", kind)
    start = _operand(where, kind, value)
    assert isinstance(start, bytes)
    return start


def _list(where: str, values: object, content: str) -> list[object]:
    """Return a list. Raises FilterError if it is something else or empty."""
    if not isinstance(values, list) or not values:
        raise FilterError(where, f"a list of {content}, not an empty one", values)
    return values
