"""Filters over metadata: a JSON object in the grammar of S3 Vectors becomes a mask of rows.

    {"category": "WORLD", "year": {"$gte": 2015}, "$or": [{"tags": "sea"}, {"tags": {"$exists": false}}]}

All members of an object must hold. A value without an operator means $eq. A list matches if one of its values does.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html
Three things go further than that page: dates are a type, $gt, $gte, $lt and $lte compare every type, and $not keeps the
rows that a filter does not keep. $startsWith compares only strings, character by character.
The page does not specify rows without a value. As in MongoDB, only $ne, $nin and {"$exists": false} keep them
(https://www.mongodb.com/docs/manual/reference/operator/query/ne/), and a list passes $ne if none of its values is
equal. An empty list is taken too: $in keeps no row then, and $nin all rows.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from semsearch.engine.errors import ExpectedError
from semsearch.engine.hits import Mask
from semsearch.engine.metadata.columns import COMPARED, EXPECTED_VALUES, STRING_TYPES, Columns, Stored, stored_value

OPERATORS = ("$eq", "$ne", *COMPARED, "$in", "$nin", "$startsWith", "$exists")
MOST_LEVELS = 8  # maximum depth of filters within filters
# maximum values of the filter of a request: each takes a pass over the rows, and 6 MB of JSON can hold millions
MOST_FILTER_VALUES = 1_000
LONGEST_OPERAND = 65_536  # maximum characters of a string that a column is compared with


class FilterError(ExpectedError, ValueError):
    """A filter that cannot be used: `where` in it, what was `expected` there and what was `found`."""

    def __init__(self, where: str, expected: str, found: object) -> None:
        super().__init__(f"{where}: expected {expected}, found {reprlib.repr(found)}")  # it may be nested deeply
        self.where = where
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True)
class Condition:
    """One operator of a filter. `operand` is a value as columns store it, or a list of them for $in and $nin."""

    where: str
    name: str
    operator: str
    operand: Any


Parsed = Condition | tuple[str, list["Parsed"]]  # "$and" or "$or" with its parts, or "$not" with its only one


def allowed_rows(condition: Mapping[str, Any], columns: Columns) -> Mask:
    """Return the rows that a filter keeps, (rows,) bool. Only the columns that it names are read.

    Raises FilterError if the filter is not in the grammar, names an unknown column, or compares with another type.
    """
    return _rows(read_filter(condition, columns.kinds), columns)


def count_values(value: object) -> int:
    """Return how many values a filter holds, itself and those of all levels included.

    A number above MOST_FILTER_VALUES is a lower bound, since counting all values of a large filter takes long.
    """
    pending, count = [value], 0
    while pending and count <= MOST_FILTER_VALUES:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return count + len(pending)


def read_filter(condition: object, kinds: Mapping[str, str]) -> Parsed:
    """Check a filter over columns of these types, and return it as conditions.

    Raises FilterError as `allowed_rows` does. Callers check how many values it holds.
    """
    return _read("filter", condition, kinds, level=1)


def _read(where: str, condition: object, kinds: Mapping[str, str], level: int) -> Parsed:
    if not isinstance(condition, dict):
        raise FilterError(where, "an object", condition)
    if level > MOST_LEVELS:
        raise FilterError(where, f"at most {MOST_LEVELS} filters within each other", condition)
    parts: list[Parsed] = []
    for name, value in condition.items():
        place = f"{where}.{name}"
        if name in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise FilterError(place, "a list of filters, not an empty one", value)
            several = enumerate(value)
            parts.append((name, [_read(f"{place}.{number}", each, kinds, level + 1) for number, each in several]))
        elif name == "$not":
            parts.append((name, [_read(place, value, kinds, level + 1)]))
        elif name not in kinds:
            raise FilterError(where, "the name of a column, $and, $or or $not", name)
        elif not isinstance(value, dict):
            expected = f"{EXPECTED_VALUES[kinds[name]]}, or an object of operators"
            operand = read_operand(place, kinds[name], value, expected)
            parts.append(Condition(place, name, "$eq", operand))
        elif not value:
            raise FilterError(place, f"at least one of {', '.join(OPERATORS)}", value)
        else:
            parts += [
                Condition(f"{place}.{operator}", name, operator, _operand_of(place, kinds[name], operator, operand))
                for operator, operand in value.items()
            ]
    return "$and", parts


def _operand_of(column: str, kind: str, operator: str, value: object) -> Stored | list[Stored]:
    where = f"{column}.{operator}"
    match operator:
        case "$in" | "$nin":
            if not isinstance(value, list):
                raise FilterError(where, "a list of values", value)
            return [read_operand(f"{where}.{place}", kind, each) for place, each in enumerate(value)]
        case "$exists":
            return read_operand(where, "boolean", value)
        case "$startsWith" if kind not in STRING_TYPES:
            raise FilterError(where, "a column of strings or lists", kind)
    if operator not in OPERATORS:
        raise FilterError(column, f"one of {', '.join(OPERATORS)}", operator)
    return read_operand(where, kind, value)


def _rows(parsed: Parsed, columns: Columns) -> Mask:
    if not isinstance(parsed, Condition):
        name, parts = parsed
        masks = [_rows(part, columns) for part in parts]
        if name == "$not":
            return ~masks[0]
        if name == "$or":
            return reduce(np.logical_or, masks)
        return reduce(np.logical_and, masks, np.ones(columns.count, np.bool_))
    column, operand = columns[parsed.name], parsed.operand
    match parsed.operator:
        case "$eq":
            return column.equals_any([operand])
        case "$ne":
            return ~column.equals_any([operand])
        case "$in":
            return column.equals_any(operand)
        case "$nin":
            return ~column.equals_any(operand)
        case "$startsWith":
            return column.starts_with(operand)
        case "$exists":
            if operand:
                return column.exists()
            return ~column.exists()
    return column.compare(parsed.operator, operand)


def read_operand(where: str, kind: str, value: object, expected: str = "") -> Stored:
    """Return a value of a request as a column of this type stores it. Raises FilterError, which names what is expected.

    By default, that is what EXPECTED_VALUES has.
    """
    if isinstance(value, str) and len(value) > LONGEST_OPERAND:
        raise FilterError(where, f"at most {LONGEST_OPERAND} characters", value)
    try:
        return stored_value(kind, value)
    except ValueError:
        raise FilterError(where, expected or EXPECTED_VALUES[kind], value) from None
