"""Boosts: add values of columns to the scores of the best hits. The first request with a boost imports this module.

    {"date": {"half_life": "30d", "weight": 0.2}, "in_stock": {"equals": true, "weight": 0.1},
     "popularity": {"log": true, "weight": 0.05}}

`half_life` adds weight * 0.5 ** (age / half_life) for a date. `equals` adds weight if the value is equal. `log` adds
weight * ln(1 + number). A row without a value and a negative number add nothing. A date in the future counts as now.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from semsearch.engine.hits import DECIMALS, Find, FindRows, Hit, Mask, Rows, Scored
from semsearch.engine.metadata.columns import EXPECTED_VALUES, Columns
from semsearch.engine.metadata.filters import FilterError, read_operand
from semsearch.engine.tensors import Array

MOST_BOOSTED = 200  # number of best hits whose scores are boosted
HEAVIEST = 1_000.0  # maximum weight of a boost
UNIT_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}  # seconds of each unit of a half-life
BOOSTED_KINDS: dict[str, tuple[str, ...]] = {
    "half_life": ("date",),
    "log": ("number",),
    "equals": tuple(EXPECTED_VALUES),
}


class Boost(NamedTuple):
    """A boost by a column. `kind` is a key of BOOSTED_KINDS.

    `operand` is the half-life in seconds, or the value of `equals` as the column stores it, or True for `log`.
    """

    column: str
    kind: str
    operand: Any
    weight: float


def read_boosts(boost: Mapping[str, Any], kinds: Mapping[str, str]) -> list[Boost]:
    """Check and return the boosts of a request; kinds has the types of the columns. Raises FilterError."""
    return [_read(f"boost.{name}", name, options, kinds) for name, options in boost.items()]


def _read(where: str, name: str, options: object, kinds: Mapping[str, str]) -> Boost:
    if name not in kinds:
        raise FilterError("boost", "the name of a column", name)
    if not isinstance(options, dict) or len(options) != 2 or len(own := BOOSTED_KINDS.keys() & options) != 1:
        raise FilterError(where, "an object with weight and one of half_life, equals and log", options)
    (kind,), weight = own, options.get("weight")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= HEAVIEST:
        raise FilterError(f"{where}.weight", f"a number from 0 to {HEAVIEST:g}", weight)
    operand: Any = options[kind]
    if kinds[name] not in BOOSTED_KINDS[kind]:
        raise FilterError(f"{where}.{kind}", f"a column of type {', '.join(BOOSTED_KINDS[kind])}", kinds[name])
    if kind == "half_life":
        operand = _seconds(f"{where}.half_life", operand)
    elif kind == "equals":
        operand = read_operand(f"{where}.equals", kinds[name], operand, f"a value of type {kinds[name]}")
    elif operand is not True:
        raise FilterError(f"{where}.log", "true", operand)
    return Boost(name, kind, operand, float(weight))


def _seconds(where: str, half_life: object) -> float:
    if isinstance(half_life, str):
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([hdw])", half_life)
        if match is not None and float(match[1]):
            return float(match[1]) * UNIT_SECONDS[match[2]]
    raise FilterError(where, "hours, days or weeks, such as 12h, 30d or 2w", half_life)


def boost_rows(boosts: Sequence[Boost], columns: Columns, rows: Rows, now: float) -> Array[np.float64]:
    """Return what all boosts together add to the score of each row, (n,) float64; now is in seconds since 1970."""
    total = np.zeros(len(rows))
    for boost in boosts:
        column = columns[boost.column]
        if boost.kind == "equals":
            total += boost.weight * column.equals_any([boost.operand])[rows]
            continue
        numbers = column.ordered[rows]
        if column.codes is not None:
            numbers = np.asarray(column.values)[numbers]
        if boost.kind == "log":
            added = np.log1p(np.maximum(numbers, 0))
        else:
            added = np.exp2(np.minimum((numbers - now * 1e6) / (boost.operand * 1e6), 0))
        if column.present is not None:
            added = added * column.exists()[rows]
        total += boost.weight * added
    return total


def boosted(
    find: Find, find_rows: FindRows, boosts: Sequence[Boost], columns: Columns, mode: str, now: float
) -> tuple[Find, FindRows]:
    """Return functions like these two of a ranking that order its first rows, the candidates, by their boosted scores.

    Rows behind the candidates keep their order. mode is the key in the `scores` of a hit for the score before boosts.
    """
    rows, scores, parts = find_rows(MOST_BOOSTED)
    added = np.round(boost_rows(boosts, columns, rows, now), DECIMALS)
    sums = np.round(scores + added, DECIMALS)
    best = Scored(rows, sums, {**parts, mode: scores, "boost": added})
    order, boosted_rows = np.argsort(-sums, kind="stable"), set(rows.tolist())

    def find_boosted(count: int, mask: Mask | None) -> list[Hit]:
        places = order
        if mask is not None:
            places = order[mask[rows[order]]]
        first = best.take(places[:count]).hits()
        if len(first) == count or len(rows) < MOST_BOOSTED:
            return first
        return (first + [hit for hit in find(count, mask) if hit.row not in boosted_rows])[:count]

    def find_boosted_rows(count: int) -> Scored:
        first, others = best.take(order), find_rows(count)
        behind = others.take(np.flatnonzero(~np.isin(others.rows, rows)))
        return Scored(
            np.concatenate((first.rows, behind.rows))[:count], np.concatenate((first.scores, behind.scores))[:count]
        )

    return find_boosted, find_boosted_rows
