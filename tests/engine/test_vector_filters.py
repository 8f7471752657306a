"""Filters of S3 Vectors, which holds numbers as float64, against Python's exact comparison."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from export.publishing.vectors import filterable_metadata
from function.engine.vector_filters import translate
from tests.engine.test_filters import COMPARED, FLOATS, INTS, holds
from tests.s3vectors_server import passes

KINDS = {"year": "number", "told": "date"}
NEAR = st.sampled_from([sign * 2**53 + step for sign in (1, -1) for step in (-1, 0, 1)])


@settings(max_examples=150)
@given(
    number=(NEAR | INTS).filter(lambda number: abs(number) <= 2**53) | st.sampled_from([0.5, -0.5, 2.0**52 - 0.5]),
    wanted=st.lists(NEAR | INTS | FLOATS | st.just(-(10**400)), min_size=1, max_size=12),
)
def test_numbers_are_compared_as_exactly_as_by_python(number: float, wanted: list[float]) -> None:
    row = {"year": number}
    vector = filterable_metadata(row, KINDS)
    operators: list[dict[str, Any]] = [{each: wanted[0]} for each in ("$eq", "$ne", *COMPARED)]
    for condition in ({"year": each} for each in [*operators, {"$in": wanted}, {"$nin": wanted}]):
        translated = translate(condition, KINDS)
        assert translated is not None
        assert passes(vector, translated) == holds(condition, row), condition


def test_dates_that_float64_would_round_are_told_from_their_neighbours() -> None:
    vector = filterable_metadata({"told": "2255-06-05T23:47:34.740992Z"}, KINDS)  # 2**53 microseconds since 1970
    assert vector == {"told": 2**53}
    for later in ("2255-06-05T23:47:34.740993Z", "9999-12-31"):
        for operator, expected in (("$eq", False), ("$lt", True), ("$gte", False)):
            translated = translate({"told": {operator: later}}, KINDS)
            assert translated is not None
            assert passes(vector, translated) == expected, (operator, later)
