"""Wire up a bundle in S3: make its BundleReloader from the settings, and connect it to the app."""

import os
from collections.abc import Callable
from functools import partial

from function.engine.loading import Loaded
from function.executor import Executor
from function.http import ASGIApp
from function.s3.active_bundle import BundlePerRequest
from function.s3.early_start import EarlyReloader
from function.s3.reloader import BundleReloader, Report, Status
from function.search.query import Search
from function.settings import Settings
from function.telemetry import Log


def make_reloader(settings: Settings, by_requests: bool) -> EarlyReloader:
    """Return an EarlyReloader for the bundle of these settings. The environment has the endpoint and the credentials.

    With by_requests, requests start the polls, as in Lambda, where no thread runs between requests.
    """
    return EarlyReloader(
        settings.bundle_url, settings.bundle_dir, settings.bundle_poll_seconds, os.environ, by_requests
    )


def connect(
    reloader: BundleReloader, executor: Executor, settings: Settings, logger: Log
) -> tuple[Search, Callable[[], Loaded], Callable[[ASGIApp], ASGIApp]]:
    """Return the search over a request's bundle, what returns that bundle, and the layer that assigns it."""
    reloader.connect(executor, _report(settings, logger, reloader.by_requests))
    per_request = partial(BundlePerRequest, begin=reloader.begin_request)
    return reloader.search, lambda: reloader.of_request().bundle, per_request


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
