"""Phases in milliseconds, on a clock that the test turns by hand, and log lines."""

import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from semsearch.app import telemetry
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch, cold_start_report, make_logger, server_timing


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
    wait(8)
    assert (stopwatch.phases, stopwatch.total()) == ({"embed": 5, "search": 2}, 15)


def test_a_stopwatch_can_have_begun_before(wait: Callable[[float], None]) -> None:
    wait(3)
    stopwatch = Stopwatch(4_000_000_000)
    stopwatch.lap("import")
    assert (stopwatch.phases, stopwatch.total()) == ({"import": 1_003}, 1_003)


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


def test_a_logger_leaves_imports_of_botocore_as_they_are_and_mangum_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    logging.getLogger("mangum").setLevel(logging.INFO)
    monkeypatch.delitem(sys.modules, "botocore", raising=False)
    make_logger(Settings())
    assert "botocore" not in sys.modules
    assert logging.getLogger("mangum").level == logging.WARNING
    monkeypatch.setitem(sys.modules, "botocore", telemetry)
    make_logger(Settings())
    assert sys.modules["botocore"] is telemetry


def test_a_start_is_a_line_and_a_metric_for_each_phase_and_their_sum(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    settings = Settings(powertools_service_name="stories", powertools_metrics_namespace="Library")
    cold_start_report(settings, logging.getLogger("tests"), "used")({"import-engine": 1.238, "model": 2.0})
    (line,) = [vars(record) for record in caplog.records]
    milliseconds = {"import-engine": 1.24, "model": 2.0, "total": 3.24}
    assert (line["message"], line["milliseconds"], line["archive"]) == ("cold start", milliseconds, "used")
    metrics = json.loads(capsys.readouterr().out)
    del metrics["_aws"]
    values = {"InitImportEngine": [1.24], "InitModel": [2.0], "InitTotal": [3.24]}
    assert metrics == {"service": "stories", "ColdStart": "true"} | values


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
