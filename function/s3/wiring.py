"""Wire up a bundle in S3: make its BundleReloader from the settings, and connect it to the app."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from function.engine.loading import Loaded
from function.executor import Executor
from function.s3.active_bundle import BundlePerRequest
from function.s3.early_start import EarlyReloader
from function.s3.reloader import BundleReloader, Report, Status
from function.search.query import Search
from function.settings import Settings
from function.telemetry import Log

if TYPE_CHECKING:  # importing FastAPI takes longer than all else here, and the fetch should begin before that
    from fastapi import FastAPI


def make_reloader(settings: Settings, by_requests: bool) -> EarlyReloader:
    """Return an EarlyReloader for the bundle of these settings. The environment has the endpoint and the credentials.

    With by_requests, requests start the polls, as in Lambda, where no thread runs between requests.
    """
    return EarlyReloader(
        settings.bundle_url, settings.bundle_dir, settings.bundle_poll_seconds, os.environ, by_requests
    )


def connect(
    app: "FastAPI", reloader: BundleReloader, executor: Executor, settings: Settings, logger: Log
) -> tuple[Search, Callable[[], Loaded]]:
    """Assign one bundle to each request of the app; return the search over it, and a function that returns it."""
    reloader.connect(executor, _report(settings, logger, reloader.by_requests))
    app.add_middleware(BundlePerRequest, begin=reloader.begin_request)
    return reloader.search, lambda: reloader.of_request().bundle


def _report(settings: Settings, logger: Log, to_cloudwatch: bool) -> Report:
    """Return a function that logs a switch and, in Lambda, sends the metric SwitchFailed: 1 if it failed, else 0."""

    def report(status: Status) -> None:
        fields = {"bundle": status.source, "version": status.version[:12], "milliseconds": status.fetch_milliseconds}
        if status.error is None:
            logger.info("bundle switched", extra=fields)
        else:
            logger.info("bundle switch failed", extra=fields | {"error": status.error})
        if to_cloudwatch:
            from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

            metrics = EphemeralMetrics(
                service=settings.powertools_service_name, namespace=settings.powertools_metrics_namespace
            )
            metrics.add_metric("SwitchFailed", MetricUnit.Count, float(status.error is not None))
            metrics.flush_metrics()

    return report
