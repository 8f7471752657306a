"""Decimals and times as JSON can hold them, without a lost digit."""

from datetime import datetime
from decimal import Decimal

import numpy as np


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
