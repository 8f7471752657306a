"""What wrk printed, and the table made of it."""

import json

import pytest

from bench.server.fairness import Fairness
from bench.server.load import Load, parse
from bench.server.serve import OURS, PEER, goodput, median, ratios, table

PRINTED = {"requests": 1_000, "seconds": 2.0, "p50": 3.0, "p99": 9.0}
NO_ERRORS = {"statuses": "", "connect": 0, "read": 0, "write": 0, "timeout": 0}


def test_only_requests_that_were_answered_with_200_count() -> None:
    printed = "Running 2s test\n" + json.dumps(PRINTED | NO_ERRORS | {"statuses": "429=100 500=10 429=50 ", "read": 3})
    assert parse(printed) == Load(420.0, 3.0, 9.0, {"429": 150, "500": 10, "read": 3})


def test_a_figure_is_the_median_of_the_rounds_and_errors_add_up() -> None:
    rounds = [Load(10, 1, 5, {"429": 1}), Load(30, 3, 4, {}), Load(20, 2, 6, {"429": 2})]
    assert median(rounds) == Load(20, 2, 5, {"429": 3})


def test_ratios_are_of_the_same_round() -> None:
    case = "/predict, short, 40"
    ours, peer = [Load(100, 1, 1, {}), Load(10, 1, 1, {})], [Load(10, 1, 1, {}), Load(1, 1, 1, {})]
    _, rows = table({OURS: {case: ours}, PEER: {case: peer}}, {OURS: 100.0, PEER: 600.0})
    assert [row[:6] for row in rows] == [
        ("/predict", "short", "40", OURS, "55", "10.0"),
        ("/predict", "short", "40", PEER, "6", "1.0"),
    ]
    assert ratios({OURS: {case: ours}, PEER: {case: peer}}, PEER) == {"predict, short, 40": 10.0}


def test_goodput_compares_overload_with_a_usual_load_in_the_same_round() -> None:
    cases = {
        "/predict, short, 10": [Load(1, 1, 1, {})] * 2,
        "/predict, short, 100": [Load(100, 1, 1, {}), Load(10, 1, 1, {})],
        "/predict, short, 1000": [Load(90, 1, 1, {}), Load(7, 1, 1, {"429": 5})],
        "/similar, short, 1000": [Load(9, 1, 1, {})] * 2,
    }
    assert goodput(cases) == {"/predict, short": pytest.approx(0.8)}


def test_the_small_caller_is_compared_with_the_batches_of_the_bulk_request() -> None:
    assert [figure for _, figure in Fairness({"200": 90, "429": 3}, 10.0, 15.0, 24.0).rows()] == [
        "3 of 93",
        "1.5",
        "2.4",
    ]
