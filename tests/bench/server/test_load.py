"""What wrk printed, and the table made of it."""

import json

from bench.server.load import Load, parse
from bench.server.serve import OURS, PEER, median, ratios, table

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


def test_a_server_that_answers_nothing_has_no_ratio() -> None:
    case = "/predict, short, 1000"
    _, rows = table({OURS: {case: [Load(9, 1, 1, {})]}, PEER: {case: [Load(0, 1, 1, {})]}}, {OURS: 1, PEER: 1})
    assert rows[0][5] == ""
