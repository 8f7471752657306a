"""Phases in milliseconds, on a clock that the test turns by hand, and log lines."""

import json
import logging
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from semsearch.app import telemetry
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch, make_logger, server_timing


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that lets milliseconds pass on the stopwatch's clock."""
    now = 5_000_000_000

    def pass_time(milliseconds: float) -> None:
        nonlocal now
        now += round(milliseconds * 1e6)

    monkeypatch.setattr(telemetry, "perf_counter_ns", lambda: now)
    return pass_time


def test_a_phase_that_comes_again_adds_up(wait: Callable[[float], None]) -> None:
    stopwatch = Stopwatch()
    for milliseconds, phase in ((1, "embed"), (2, "search"), (4, "embed")):
        wait(milliseconds)
        stopwatch.lap(phase)
    assert stopwatch.phases == {"embed": 5, "search": 2}


def test_server_timing_names_each_phase_in_order_and_the_total_last() -> None:
    header = server_timing({"embed": 1.23456, "search": 0.0}, total=2)
    assert header == "embed;dur=1.23, search;dur=0.00, total;dur=2.00"
    assert server_timing({}, total=0.125) == "total;dur=0.12"


def test_a_log_line_has_the_bytes_of_pythons_json(capsys: pytest.CaptureFixture[str]) -> None:
    logger = make_logger(Settings(powertools_service_name="the bytes of a line"))
    fields = {"query": "caf\u00e9 \u2028", "phases": {"embed": 0.1 + 0.2, "reply": 1.0}, "rows": [2**70, None, True]}
    logger.info("12", extra=fields | {"folder": Path("docs")})
    line = capsys.readouterr().out
    found = json.loads(line)
    head = {"level": "INFO", "message": "12", "timestamp": found["timestamp"], "service": "the bytes of a line"}
    expected = head | fields | {"folder": "docs"}
    assert line == json.dumps(expected, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_a_log_line_has_a_time_that_lambdas_filter_of_levels_reads_and_no_name_of_a_task() -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html"""
    logger = make_logger(Settings(powertools_service_name="the time of a line"))
    record = logging.makeLogRecord({"msg": "request", "created": 1795252524.117, "levelname": "INFO"})
    record.taskName = "Task-10"  # which Python adds since 3.12
    (handler,) = logger.handlers
    line = json.loads(handler.format(record))
    assert "taskName" not in line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)", line["timestamp"])  # RFC 3339
    assert datetime.fromisoformat(line["timestamp"]).timestamp() == 1795252524.117
