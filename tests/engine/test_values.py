"""Numbers, times and ids keep every digit, or there is none."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from semsearch.engine.errors import BackendError, OptionError
from semsearch.engine.values import exact_number, exact_time, id_of_number, id_text


@pytest.mark.parametrize(
    ("value", "id"),
    [
        ("x", "x"),
        ("", ""),
        (7, "7"),
        (7.0, "7"),
        (-7.0, "-7"),
        (7.5, "7.5"),
        (2.0**53 - 1, "9007199254740991"),
        (2.0**53, "9007199254740992.0"),
        (-(2.0**53), "-9007199254740992.0"),
        (2**70, str(2**70)),
        (math.nan, None),
        (math.inf, None),
        (True, None),
        (None, None),
        (UUID(int=1), None),
    ],
)
def test_whole_numbers_have_ids_without_a_point(value: Any, id: str | None) -> None:
    assert id_text(value) == id
    if isinstance(value, int | float) and id is not None:
        assert id_of_number(value) == id


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        ("3.0", 3),
        ("1E+30", 10**30),
        ("-0.5", -0.5),
        ("2.1", 2.1),
        ("0.12345678901234567890", None),
        ("9007199254740993.5", None),
    ],
)
def test_a_decimal_is_a_number_with_its_digits_or_none(digits: str, number: float | None) -> None:
    found = exact_number(Decimal(digits))
    assert (type(found), found) == (type(number), number)


class Timestamp(datetime):
    """A time of pandas, as far as it differs from Python's."""

    nanosecond = 1


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (np.datetime64("2024-02-29"), "2024-02-29"),
        (np.datetime64("2024-02-29T12"), "2024-02-29T12:00:00"),
        (np.datetime64("2024-02-29T12:00:00.000001000", "ns"), "2024-02-29T12:00:00.000001"),
        (np.datetime64("2024-02-29T12:00:00.000000001", "ns"), None),
        (np.datetime64("NaT"), None),
        (datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00+00:00"),
        (Timestamp(2024, 2, 29), None),
    ],
)
def test_a_time_is_iso_8601_or_none(value: Any, time: str | None) -> None:
    assert exact_time(value) == time


def test_errors_have_their_parts() -> None:
    error = OptionError("text_column", "found 3")
    assert (str(error), error.on_command_line()) == ("text_column: found 3", "--text-column: found 3")
    assert (error.name, error.message) == ("text_column", "found 3")
    for seconds in (None, 5):
        failed = BackendError("no answer", seconds)
        assert (str(failed), failed.seconds) == ("no answer", seconds)
    assert BackendError("no answer").seconds is None
