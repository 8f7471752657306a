"""The lines of the log: as powertools writes them, to the letter."""

import logging
import sys

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from function.log_lines import LineFormatter

FIELDS = {
    "method": "POST",
    "path": "/żółw",
    "milliseconds": 4.123,
    "phases": {"embed": 2.5},
    "cold_start": False,
    "request_id": "c6af9ac6",
    "error": None,
    "odd": {1}.__class__,  # written as text
}


def record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    """Return a record, as the standard library makes it."""
    failure = None
    if failed:
        try:
            raise ValueError("broken")
        except ValueError:
            failure = sys.exc_info()
    logger = logging.getLogger("lines")
    return logger.makeRecord("lines", logging.INFO, "file.py", 7, message, arguments, failure, extra=FIELDS)


@pytest.mark.parametrize(
    "trace_id", [None, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"]
)
@pytest.mark.parametrize(
    "line",
    [record("request"), record("%d requests", 5), record("request failed", failed=True)],
    ids=lambda one: one.msg,
)
def test_a_line_is_what_powertools_writes(
    line: logging.LogRecord, trace_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    if trace_id:
        monkeypatch.setenv("_X_AMZN_TRACE_ID", trace_id)
    expected = LambdaPowertoolsFormatter(service="search", location=None).format(line)
    assert LineFormatter("search").format(line) == expected
    assert '"service":"search"' in expected
    assert ("1-5759e988" in expected) is bool(trace_id)
