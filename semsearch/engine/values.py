"""Decimals, times and ids as JSON can hold them, without a lost digit."""

import math
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import numpy as np

Id = str | float | UUID  # what names a text; an int is a float for type checkers
EXACT_FLOATS = 2**53  # up to here a float holds every whole number (IEEE 754, 53 bits of significand)
TEXT_TYPES = ("Interval", "Period", "UUID")  # names of the types of pandas and Python whose values are kept as text


def id_of_number(number: float) -> str:
    """Return a number, int or float, as an id. Whole numbers get no decimal point: 1, 1.0 and "1" are the same id."""
    if isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS:
        return str(int(number))
    return str(number)


def id_text(value: object) -> str | None:
    """Return a string or a number as the id that `index` makes of it. Return None for what is no id."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return id_of_number(value)


def exact_number(value: Decimal) -> int | float | None:
    """Return a finite Decimal as a number that is written with the same digits; None if no number of 64 bits is.

    Example:
        >>> exact_number(Decimal("3.0")), exact_number(Decimal("2.1")), exact_number(Decimal("0.12345678901234567890"))
        (3, 2.1, None)
    """
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else None


def exact_time(value: np.datetime64 | datetime) -> str | None:
    """Return a time as ISO 8601, and a date of NumPy without an hour. Return None for nanoseconds, and for NaT.

    A datetime can be pandas' Timestamp, which has nanoseconds, or its NaT.
    """
    if isinstance(value, datetime):
        return None if getattr(value, "nanosecond", 0) else value.isoformat()
    moment = value.astype("datetime64[us]")
    if moment != value:  # also NaT
        return None
    return str(value if np.datetime_data(value.dtype)[0] == "D" else moment.item().isoformat())
