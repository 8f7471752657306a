"""How many rows have each value of a column. Imported by the first query that asks for facets."""

from datetime import timedelta, timezone
from typing import Any

import numpy as np

from function.engine.metadata.columns import EPOCH, Column, Mask
from function.engine.tensors import AnyArray

MOST_FACET_VALUES = 100  # maximum values of a facet that are returned
MIDNIGHT = "T00:00:00Z"


def count_values(column: Column, allowed: Mask | None, most: int = MOST_FACET_VALUES) -> list[tuple[Any, int]]:
    """Return the most frequent values of a column and the number of rows that have each, most frequent first.

    allowed is (rows,) bool: only rows where it is true are counted; None counts every row. Rows without a value are not
    counted, and a row whose list has a string twice is counted once. Values with equal counts ascend. A date is
    returned as ISO 8601 in UTC, without a time if it is midnight.
    """
    mask = column.exists() if allowed is None else column.exists() & allowed
    if column.rows is not None:  # a list has an entry for each of its strings
        assert column.codes is not None
        entries = mask[column.rows]
        size = len(column.values)
        pairs = np.unique(column.rows[entries].astype(np.int64) * size + column.codes[entries])
        values, counts = np.unique(pairs % max(size, 1), return_counts=True)
    else:
        values, counts = np.unique(column.ordered[mask], return_counts=True)
    order = np.lexsort((values, -counts))[:most]
    return [(_json_value(column, values[place]), int(counts[place])) for place in order]


def _json_value(column: Column, value: Any) -> Any:
    if column.codes is not None:
        value = column.values[int(value)]
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    number = value.item()
    match column.kind:
        case "boolean":
            return bool(number)
        case "date":
            return _iso_date(number)
    return number


def _iso_date(microseconds: int) -> str:
    """Return a moment, in microseconds since 1970, in UTC, or in another zone if UTC's year is not in 1 to 9999."""
    try:
        moment = EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        zone = timezone((1 if microseconds < 0 else -1) * timedelta(hours=23, minutes=59))
        moment = EPOCH.astimezone(zone) + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z").removesuffix(MIDNIGHT)


def sort_rows(rows: AnyArray, columns: list[tuple[Column, bool]]) -> AnyArray:
    """Return rows (n,) ordered by the values of columns, each ascending (False) or descending (True).

    Rows with equal values keep their order, and rows without a value come last.
    """
    keys: list[AnyArray] = []
    for column, is_descending in columns:
        ranks = np.unique(column.ordered[rows], return_inverse=True)[1].astype(np.int64)
        keys += [~column.exists()[rows], -ranks if is_descending else ranks]
    return rows[np.lexsort(keys[::-1])] if keys else rows
