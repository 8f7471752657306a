"""What an operator sees, on standard output: a logger of JSON lines, and metrics in CloudWatch's embedded format."""

import logging
from collections.abc import Mapping

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from function.cold_start import Report
from function.settings import Settings


def make_logger(settings: Settings) -> Logger:
    """Give the one logger. It tells no location: it is always the same line."""
    logging.getLogger("mangum").setLevel(logging.WARNING)  # it has a line for each request too
    return Logger(service=settings.powertools_service_name, location=None)


def cold_start_report(settings: Settings, logger: Logger) -> Report:
    """Give what tells of a start: one line in the log, and a metric for each phase and for their sum.

    A metric's name is the phase's: InitImportEngine, InitTotal. Its dimensions are the service and ColdStart.
    """

    def report(phases: Mapping[str, float]) -> None:
        milliseconds = {phase: round(value, 2) for phase, value in (*phases.items(), ("total", sum(phases.values())))}
        logger.info("cold start", extra={"milliseconds": milliseconds})
        metrics = EphemeralMetrics(
            service=settings.powertools_service_name, namespace=settings.powertools_metrics_namespace
        )
        metrics.add_dimension("ColdStart", "true")
        for phase, value in milliseconds.items():
            name = "Init" + "".join(word.capitalize() for word in phase.split("-"))
            metrics.add_metric(name, MetricUnit.Milliseconds, value)
        metrics.flush_metrics()

    return report
