"""How many rows have each value of a column. The first query with facets imports this module."""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta, timezone
from typing import Any

import numpy as np

from semsearch.engine.bundle import COLUMNS
from semsearch.engine.hits import Mask
from semsearch.engine.metadata.columns import EPOCH, STRING_TYPES, Column
from semsearch.engine.tensors import DAMAGED, AnyArray, TensorsError

MOST_FACET_VALUES = 100  # maximum values of a facet that are returned
MOST_RANGES = 10  # maximum ranges of a facet
UNTIL_1970 = {"D": 3, "M": 12 * 1970}  # days since a Monday, months since the year 0
YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
DATE_STEPS = (("D", 1), ("D", 7), ("M", 1), ("M", 3), *(("M", 12 * years) for years in YEARS))
MIDNIGHT = "T00:00:00Z"


def count_values(column: Column, allowed: Mask | None, most: int = MOST_FACET_VALUES) -> list[dict[str, Any]]:
    """Return the most frequent values of a column and the number of rows that have each, most frequent first.

    allowed is (rows,) bool: only rows where it is true are counted; None counts every row. Rows without a value are not
    counted, and a row whose list has a value twice is counted once. Values with equal counts ascend. A date is
    returned as ISO 8601 in UTC, without a time if it is midnight.

    More than `most` different numbers or dates are counted in ranges, which ascend and are not empty: `from` is in the
    range, `to` is not. A border that no float64 or ISO 8601 date can express is left out.
    """
    mask = column.exists()
    if allowed is not None:
        mask = mask & allowed
    if column.rows is not None:  # a list has an entry for each of its different values
        assert column.codes is not None
        values, counts = np.unique(column.codes[mask[column.rows]], return_counts=True)
    else:
        values, counts = np.unique(column.ordered[mask], return_counts=True)
    if column.kind in ("number", "date") and len(values) > most:
        if column.codes is not None:
            values = np.asarray(column.values)[values]
        return _count_ranges(column.kind, values, counts)
    order = np.lexsort((values, -counts))[:most]
    return [{"value": _json_value(column, values[place]), "count": int(counts[place])} for place in order]


def _count_ranges(kind: str, values: AnyArray, counts: AnyArray) -> list[dict[str, Any]]:
    """Return the narrowest ranges of which at most MOST_RANGES are not empty, and the count of each.

    values is (n,) and ascends; counts is (n,).
    """
    low, high = values[0].item(), values[-1].item()
    if kind == "date":
        for end in (low, high):
            _stored_date(end)  # raises TensorsError if it is damaged
    elif not math.isfinite(low) or not math.isfinite(high):
        raise TensorsError(f"{COLUMNS}: found the numbers {low} and {high}, expected finite ones; {DAMAGED}")
    totals = np.concatenate([[0], np.cumsum(counts)])
    borders_around = _date_borders if kind == "date" else _number_borders
    for borders in borders_around(low, high):
        # bisect compares whole numbers of any size with fractions exactly
        below = totals[[bisect_left(values, border, key=lambda value: value.item()) for border in borders]]
        between = zip(itertools.pairwise(borders), np.diff(below).tolist(), strict=True)
        ranges = [_show_range(kind, *ends) | {"count": count} for ends, count in between if count]
        if len(ranges) <= MOST_RANGES:
            break
    return ranges


def _number_borders(low: float, high: float) -> Iterator[list[Any]]:
    """Yield borders around two numbers, fewer each time; they are 1, 2 or 5 times a power of ten apart."""
    least = int(f"{high / 10 - low / 10:.16e}".partition("e")[2])
    for exponent in itertools.count(least):
        for digit in (1, 2, 5):
            if isinstance(low, int):
                step = digit * 10**exponent
                yield [place * step for place in _places_around(low, high, step)]
            else:
                places = _places_around(low, high, float(f"{digit}e{exponent}"))
                # the text 15e-2 is the float64 closest to 0.15, which 3 * 0.05 is not
                yield [float(f"{place * digit}e{exponent}") for place in places]


def _places_around(low: float, high: float, step: float) -> range:
    return range(int(low // step) - 1, int(high // step) + 3)  # one more, because fractions are rounded


def _date_borders(low: int, high: int) -> Iterator[list[Any]]:
    """Yield borders around two moments, in microseconds since 1970: days, Mondays, months, quarters, then years."""
    for unit, step in DATE_STEPS:
        ends = np.array([low, high], "M8[us]").astype(f"M8[{unit}]").astype(np.int64)
        first, last = (ends + UNTIL_1970[unit]) // step
        if last - first < MOST_RANGES:
            places = np.arange(first, last + 2) * step - UNTIL_1970[unit]
            yield places.astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64).tolist()


def _show_range(kind: str, *ends: Any) -> dict[str, Any]:
    shown = {}
    for name, end in zip(("from", "to"), ends, strict=True):
        if kind == "date":
            with suppress(OverflowError):  # no date is so early or so late
                shown[name] = _iso_date(end)
        elif math.isfinite(end):
            shown[name] = end
    return shown


def _json_value(column: Column, value: Any) -> Any:
    if column.kind in STRING_TYPES:
        return column.string(int(value))
    if column.codes is not None:
        value = column.values[int(value)]
    number = value.item()
    match column.kind:
        case "boolean":
            return bool(number)
        case "date":
            return _stored_date(number)
    return number


def _stored_date(microseconds: int) -> str:
    """Return a date of a column as `_iso_date` does. Raises TensorsError if no document can have it."""
    try:
        return _iso_date(microseconds)
    except OverflowError as error:
        found = f"a date {microseconds} microseconds from 1970"
        raise TensorsError(f"{COLUMNS}: found {found}, expected the years 1 to 9999; {DAMAGED}") from error


def _iso_date(microseconds: int) -> str:
    """Return a moment, in microseconds since 1970, as ISO 8601 in UTC.

    It is in another zone if its year in UTC is not within 1 to 9999. Raises OverflowError if it is so in every zone.
    """
    try:
        moment = EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        offset = timedelta(hours=23, minutes=59)
        if microseconds > 0:
            offset = -offset
        moment = EPOCH.astimezone(timezone(offset)) + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z").removesuffix(MIDNIGHT)


def sort_rows(rows: AnyArray, columns: list[tuple[Column, bool]]) -> AnyArray:
    """Return rows (n,) ordered by the values of columns, each ascending (False) or descending (True).

    Rows with equal values keep their order, and rows without a value come last.
    """
    keys: list[AnyArray] = []
    for column, is_descending in columns:
        ranks = np.unique(column.ordered[rows], return_inverse=True)[1].astype(np.int64)
        if is_descending:
            ranks = -ranks
        keys += [~column.exists()[rows], ranks]
    if not keys:
        return rows
    return rows[np.lexsort(keys[::-1])]
