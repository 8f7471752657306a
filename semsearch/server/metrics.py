"""GET /metrics: counts and times for Prometheus. Workers count in mapped files, and a reply has the sums.

prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported, so set it before this module is imported.
"""

import os
import re

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.routing import Route

from semsearch.app.telemetry import Stopwatch

PREFIX = "semantic_search"
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TEXTS_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (8, 16, 32, 64, 128, 256, 512)
OTHER = "other"  # label of all paths without a route, because callers can invent any number of them


class Metrics:
    """The counts of this process or, with PROMETHEUS_MULTIPROC_DIR, of all workers, which count in that folder."""

    def __init__(self) -> None:
        """Start at zero."""
        self._registry = own = CollectorRegistry()
        self._requests = Counter("requests", "Requests answered.", ["route", "status"], PREFIX, registry=own)
        waited = "Time to answer a request, without those refused with 429."
        self._latency = Histogram("request_seconds", waited, ["route"], PREFIX, registry=own, buckets=SECONDS_BUCKETS)
        self._phases = Histogram(
            "phase_seconds",
            "Time of a request's phase.",
            ["route", "phase"],
            PREFIX,
            registry=own,
            buckets=SECONDS_BUCKETS,
        )
        self._texts = Histogram("batch_texts", "Texts of a batch.", (), PREFIX, registry=own, buckets=TEXTS_BUCKETS)
        self._tokens = Histogram("batch_tokens", "Tokens of a batch.", (), PREFIX, registry=own, buckets=TOKENS)
        self._queued = Gauge(
            "queued_tokens", "Tokens that wait for the model.", (), PREFIX, registry=own, multiprocess_mode="livesum"
        )
        self._left = Counter("callers_left", "Requests dropped because their caller hung up.", (), PREFIX, registry=own)
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._paths: set[str] = set()
        self._patterns: dict[str, re.Pattern[str]] = {}  # patterns of the paths with parameters, by path
        self._app: FastAPI | None = None

    def add_route(self, app: FastAPI) -> None:
        """Add GET /metrics to the app. Requests are counted by the paths of its routes."""
        self._app = app

        @app.get(
            "/metrics",
            summary="Counts for Prometheus",
            response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        )
        async def metrics() -> Response:
            return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)

    def count_request(self, path: str, status: int, stopwatch: Stopwatch) -> None:
        """Count a request that was answered."""
        route = self._route(path)
        self._requests.labels(route, str(status)).inc()
        if status != 429:  # its time is mostly the wait before it was sent
            self._latency.labels(route).observe(stopwatch.total() / 1e3)
        for phase, milliseconds in stopwatch.phases.items():
            self._phases.labels(route, phase).observe(milliseconds / 1e3)

    def count_batch(self, texts: int, tokens: int) -> None:
        """Count a batch."""
        self._texts.observe(texts)
        self._tokens.observe(tokens)

    def set_queued(self, tokens: int) -> None:
        """Set the number of tokens that wait."""
        self._queued.set(tokens)

    def count_left(self) -> None:
        """Count a request whose caller hung up."""
        self._left.inc()

    def _route(self, path: str) -> str:
        if path not in self._paths and self._app is not None:  # routes can have been added since
            routes = [route for route in self._app.routes if isinstance(route, Route)]
            self._paths = {route.path for route in routes}
            self._patterns = {route.path_format: route.path_regex for route in routes if route.param_convertors}
        if path in self._paths:
            return path
        return next((route for route, pattern in self._patterns.items() if pattern.match(path)), OTHER)
