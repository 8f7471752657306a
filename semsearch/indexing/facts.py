"""What is known of each value of the metadata, so that the types of columns are chosen without parsing JSON again.

The facts of a value are bits of a uint16, and 0 where a row has no value. A column has few different facts, and what it
has follows from these. An update takes the facts of the rows that stay from the older index.
"""

import json
import re
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from semsearch.engine.metadata.columns import EXPECTED_VALUES, LIST_TYPES, Stored, stored_value
from semsearch.engine.tensors import Array
from semsearch.engine.values import EXACT_FLOATS
from semsearch.indexing.digests import Positions

Facts = Mapping[str, Array[np.uint16]]  # by column: the facts of the value of each row, (rows,)

# The facts beside the types that a value fits. Every value has the first one. A string has SAME_JSON if it is a number
# and JSON writes that number in the same form. IS_LONG is for lists: see MOST_NUMBERS.
HAS_VALUE, IS_STRING, BEGINS_AS_DATE, SAME_JSON, IS_LONG = (1 << bit for bit in range(5))
INT64, UINT64, FLOAT64 = (1 << bit for bit in range(5, 8))  # the dtypes that hold the value's numbers exactly
FITS = {kind: 1 << bit for bit, kind in enumerate(EXPECTED_VALUES, 8)}  # the types that the value fits if requested

MOST_NUMBERS = 100  # numbers of a list that becomes a column by itself; an embedding has more
NUMERIC_TYPES = frozenset(["number", "numbers"])
DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# The types beside string that a string can fit, by its first character that is no space.
TYPES_BY_START = dict.fromkeys("tTfF", ("boolean",)) | {"[": LIST_TYPES, "-": ("number",)}
TYPES_BY_START |= dict.fromkeys("0123456789", ("number", "date"))


def stored_values(kind: str, value: object) -> list[Stored] | None:
    """Return what a column of this type stores for a value, None if the value does not fit the type.

    A list has its different values, another type one value. A string can be the JSON of a number, a boolean (also
    capitalized, as Python writes it) or a list, because a CSV has no other way to state one. A number fits a column of
    strings as its JSON.
    """
    try:
        if kind == "string" and type(value) in (int, float):
            value = json.dumps(value)
        if isinstance(value, str) and kind in ("number", "boolean", *LIST_TYPES):
            value = json.loads(value.lower() if kind == "boolean" else value)
        if kind not in LIST_TYPES:
            return [stored_value(kind, value)]
        if not isinstance(value, list):
            return None
        return list(dict.fromkeys(stored_value(kind, each) for each in value if each is not None))
    except (ValueError, RecursionError):
        return None


def read_facts(metadata: Iterable[str]) -> Facts:
    """Return the facts of the metadata, which has a JSON object for each row."""
    columns: dict[str, array[int]] = {}
    rows = 0
    for text in metadata:
        for name, value in json.loads(text).items():
            column = columns.setdefault(name, array("H"))
            if len(column) < rows:
                _pad(column, rows)
            column.append(_facts_of(value))
        rows += 1
    for column in columns.values():
        _pad(column, rows)
    return {name: np.frombuffer(column, np.uint16) for name, column in columns.items()}


def _pad(column: "array[int]", rows: int) -> None:
    column.frombytes(bytes((rows - len(column)) * column.itemsize))


def update_facts(older: Facts, older_rows: Positions, new: Facts) -> Facts:
    """Return the facts of an index of which some rows are those of an older one.

    older_rows (rows,) has the older row of each, -1 for one that is new. `new` has the facts of the new ones alone. A
    column that no row has is left out.
    """
    is_new = older_rows < 0
    stays = older_rows[~is_new]
    facts = {}
    for name in older.keys() | new.keys():
        column = np.zeros(len(older_rows), np.uint16)
        if name in older:
            column[~is_new] = older[name][stays]
        if name in new:
            column[is_new] = new[name]
        if column.any():
            facts[name] = column
    return facts


def _facts_of(value: object) -> int:
    if isinstance(value, str):
        facts = HAS_VALUE | IS_STRING | FITS["string"]
        kinds = TYPES_BY_START.get(value.lstrip()[:1])
        if kinds is None:
            return facts
        if DATE_PATTERN.match(value):
            return facts | BEGINS_AS_DATE | _fitting(("date",), value)
        facts |= _fitting(kinds, value)
        if facts & FITS["number"] and json.dumps(json.loads(value)) == value:
            facts |= SAME_JSON
        return facts
    if isinstance(value, bool):
        return HAS_VALUE | FITS["boolean"]
    if isinstance(value, int | float):
        return HAS_VALUE | FITS["string"] | _fitting(("number",), value)
    if isinstance(value, list):
        return HAS_VALUE | _fitting(LIST_TYPES, value) | IS_LONG * (len(value) > MOST_NUMBERS)
    return HAS_VALUE


def _fitting(kinds: Sequence[str], value: object) -> int:
    facts = 0
    for kind in kinds:
        stored = stored_values(kind, value)
        if stored is not None:
            facts |= FITS[kind]
            if kind in NUMERIC_TYPES:
                facts |= _exact_dtypes(stored)
    return facts


def _exact_dtypes(numbers: Iterable[Stored]) -> int:
    facts = INT64 | UINT64 | FLOAT64
    for number in numbers:
        assert not isinstance(number, bytes)
        if isinstance(number, float) and not number.is_integer():
            facts &= FLOAT64
        whole = int(number)
        if not -(2**63) <= whole < 2**63:
            facts &= ~INT64
        if not 0 <= whole < 2**64:
            facts &= ~UINT64
        if is_rounded(whole):
            facts &= ~FLOAT64
    return facts


def is_rounded(number: Stored) -> bool:
    """Return whether float64 would round a number, which then is a whole one."""
    assert not isinstance(number, bytes)
    if isinstance(number, float) or abs(number) <= EXACT_FLOATS:
        return False
    return abs(number) > sys.float_info.max or float(number) != number


def count_facts(column: Array[np.uint16]) -> dict[int, int]:
    """Return the different facts of the values of a column, each with the number of rows that have it."""
    counts = np.bincount(column)
    return {facts: int(counts[facts]) for facts in np.flatnonzero(counts).tolist() if facts}


def own_types(facts: int) -> frozenset[str]:
    """Return the types that a value of these facts has by itself."""
    if facts & IS_STRING:
        kinds = {"string", "date"} if facts & BEGINS_AS_DATE else {"string"}
    elif facts & IS_LONG:
        kinds = {"list"}
    else:
        kinds = FITS.keys() - {"string"}  # a number fits a column of strings, but only a string makes one
    return frozenset(kind for kind in kinds if facts & FITS[kind])


def numbers_dtype(different: Iterable[int]) -> "np.dtype[np.generic] | None":
    """Return the first of int64, uint64 and float64 that holds all numbers exactly, None if none does, from facts."""
    all_fit = INT64 | UINT64 | FLOAT64
    for facts in different:
        all_fit &= facts
    for bit, dtype in ((INT64, np.int64), (UINT64, np.uint64), (FLOAT64, np.float64)):
        if all_fit & bit:
            return np.dtype(dtype)
    return None
