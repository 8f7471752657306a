"""Times of phases, log lines in JSON, and metrics in CloudWatch's embedded format."""

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from aws_lambda_powertools.logging import Logger
    from aws_lambda_powertools.metrics import EphemeralMetrics
    from starlette.requests import Request

    from semsearch.app.settings import Settings

ReportColdStart = Callable[[Mapping[str, float]], None]


class Log(Protocol):
    """A logger: the standard library's or powertools'."""

    def info(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Log one line with further fields."""

    def error(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Log one line with further fields, as an error."""

    def exception(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Log one line with further fields and the trace of the exception that is being handled."""


class Stopwatch:
    """Named phases in milliseconds: `lap` closes a phase and opens the next."""

    __slots__ = ("_begin", "_last", "phases")

    def __init__(self, begin: int | None = None) -> None:
        """Start now, or at `begin`, an earlier value of perf_counter_ns."""
        self._begin = self._last = perf_counter_ns() if begin is None else begin
        self.phases: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        """Add the milliseconds since the last lap to a phase."""
        now = perf_counter_ns()
        self.phases[phase] = self.phases.get(phase, 0.0) + (now - self._last) / 1e6
        self._last = now

    def total(self) -> float:
        """Return the milliseconds since the stopwatch was started."""
        return (perf_counter_ns() - self._begin) / 1e6


def stopwatch_of(request: "Request") -> Stopwatch:
    """Return a request's stopwatch, at the end of its phase `parse`.

    Each phase that a route ends with `lap` is logged and sent in Server-Timing.
    """
    stopwatch: Stopwatch = request.scope["stopwatch"]
    stopwatch.lap("parse")
    return stopwatch


def server_timing(phases: dict[str, float], total: float) -> str:
    """Return the value of a Server-Timing header (https://www.w3.org/TR/server-timing/), in milliseconds."""
    entries = [f"{phase};dur={milliseconds:.2f}" for phase, milliseconds in phases.items()]
    return ", ".join([*entries, f"total;dur={total:.2f}"])


def make_logger(settings: "Settings") -> "Logger":
    """Return the logger. Its lines have no location in the code, because it would be the same in every line."""
    import logging
    import sys

    # If botocore is installed, powertools imports it to put its own name into boto3's headers. Nothing here uses boto3.
    # None in sys.modules makes `import botocore` fail, which powertools accepts.
    sys.modules.setdefault("botocore", None)  # type: ignore[arg-type]
    from aws_lambda_powertools.logging import Logger  # not above: a stopwatch starts before these imports
    from pydantic_core import to_json

    if sys.modules["botocore"] is None:
        del sys.modules["botocore"]

    logging.getLogger("mangum").setLevel(logging.WARNING)  # otherwise it logs each request too
    # since Python 3.12, a line has the name of its task of asyncio, which a start does not import
    setattr(logging, "logAsyncioTasks", False)  # noqa: B010  Python 3.11 has no such name

    def write_line(fields: dict[str, object]) -> str:
        fields.pop("taskName", None)
        return to_json(fields, fallback=str).decode()

    return Logger(
        service=settings.powertools_service_name,
        location=None,
        use_rfc3339=True,  # Lambda's filter of levels reads no other time
        # Otherwise powertools writes with Python's `json`, and tries to parse each message, which takes 1.5 times the
        # time of a line.
        json_serializer=write_line,
        json_deserializer=str,
    )


def cold_start_report(settings: "Settings", logger: Log, archive: str) -> ReportColdStart:
    """Return a function that reports a start: one log line, and a metric for each phase and for their sum.

    A metric is named after its phase, such as InitImportEngine, or InitTotal. Its dimensions are the service and
    ColdStart.
    """

    def report(phases: Mapping[str, float]) -> None:
        milliseconds = {phase: round(value, 2) for phase, value in (*phases.items(), ("total", sum(phases.values())))}
        logger.info("cold start", extra={"milliseconds": milliseconds, "archive": archive})
        metrics = make_metrics(settings)
        metrics.add_dimension("ColdStart", "true")
        for phase, value in milliseconds.items():
            name = "Init" + "".join(word.capitalize() for word in phase.split("-"))
            metrics.add_metric(name, "Milliseconds", value)
        metrics.flush_metrics()

    return report


def make_metrics(settings: "Settings") -> "EphemeralMetrics":
    """Return an empty set of metrics. The module is imported now, because a start does not need it."""
    from aws_lambda_powertools.metrics import EphemeralMetrics

    return EphemeralMetrics(service=settings.powertools_service_name, namespace=settings.powertools_metrics_namespace)
