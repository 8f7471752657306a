"""GET /metrics: counts and times for Prometheus, summed over the workers.

Each worker counts in a row of its own in memory that is shared. The memory is reserved before the workers are forked.
So nothing is written to a disk that can be full, and the counts of a worker that dies stay: its successor adds to them.
"""

import mmap
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from time import time
from typing import Any

import numpy as np
from fastapi import FastAPI, Response
from numpy.typing import NDArray
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.routing import Route

from semsearch.app.access.bound_filters import BoundFilters
from semsearch.app.reloading.reloader import VERSION_CHARACTERS, Status
from semsearch.app.shared_memory import SharedFailures
from semsearch.app.telemetry import Stopwatch

PREFIX = "semantic_search"
SECONDS_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)  # upper bounds of buckets
TEXTS_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)  # likewise
TOKENS_BUCKETS = (8, 16, 32, 64, 128, 256, 512)  # likewise
COUNTED_STATUSES = tuple(status.value for status in HTTPStatus)
PHASES = ("parse", "filter", "keyword", "tokenize", "embed", "search", "rerank", "reply")
OTHER = "other"  # label of all paths without a route, because callers can invent any number of them


class Metrics(Collector):
    """The counts of the workers. Several threads can count."""

    def __init__(self, workers: int = 1, updates: SharedFailures | None = None) -> None:
        """Prepare for this number of workers, and for the updates of the index, if a process makes them.

        `add_route` reserves the memory.
        """
        self._workers, self._updates = workers, updates
        self.keys: SharedFailures | None = None  # failures to read the keys that AWS keeps
        self.filters: BoundFilters | None = None
        self._lock = Lock()

    def add_route(self, app: FastAPI) -> None:
        """Add GET /metrics to the app, and count by the paths of its routes, all at zero."""
        registry = CollectorRegistry()

        @app.get(
            "/metrics",
            summary="Counts for Prometheus",
            response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        )
        async def metrics() -> Response:
            return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

        routes = [route for route in app.routes if isinstance(route, Route)]
        paths = [*dict.fromkeys(route.path_format for route in routes), OTHER]
        self._routes: Mapping[str, int] = {path: row for row, path in enumerate(paths)}
        self._patterns: list[tuple[re.Pattern[str], int]] = [
            (route.path_regex, self._routes[route.path_format]) for route in routes if route.param_convertors
        ]
        row = _row_of(len(paths))
        memory = mmap.mmap(-1, row.itemsize * self._workers)
        self._rows: NDArray[np.void] = np.frombuffer(memory, row)
        self.begin(0)
        registry.register(self)

    def begin(self, worker: int) -> None:
        """Count in the row of this worker, from now on, in its process. `worker` is its number, from 0."""
        self._own = self._rows[worker]
        self._own["connections"] = 0.0
        self._own["queued"] = 0.0  # a worker that had this number before can have died with requests
        self._failures_before = float(self._own["failures"])  # polls of these workers that failed

    def count_request(self, path: str, status: int, stopwatch: Stopwatch) -> None:
        """Count a request that was answered."""
        route = self._route(path)
        with self._lock:
            self._own["requests"][route, COUNTED_STATUSES.index(status)] += 1
            if status != HTTPStatus.TOO_MANY_REQUESTS:  # its time is mostly the wait before it was sent
                _observe(self._own["seconds"][route], SECONDS_BUCKETS, stopwatch.total() / 1e3)
            for phase, milliseconds in stopwatch.phases.items():
                _observe(self._own["phases"][route, PHASES.index(phase)], SECONDS_BUCKETS, milliseconds / 1e3)

    def count_batch(self, texts: int, tokens: int) -> None:
        """Count a batch."""
        with self._lock:
            _observe(self._own["texts"], TEXTS_BUCKETS, texts)
            _observe(self._own["tokens"], TOKENS_BUCKETS, tokens)

    def set_queued(self, tokens: int) -> None:
        """Set the number of tokens that wait."""
        self._own["queued"] = tokens

    def set_connections(self, number: int) -> None:
        """Set the number of open connections."""
        self._own["connections"] = number

    def count_left(self) -> None:
        """Count a request whose caller hung up."""
        with self._lock:
            self._own["left"] += 1

    def set_bundle(self, status: Status) -> None:
        """Set the bundle that this worker serves, when it was loaded and last looked for, and how many polls failed."""
        self._own["version"] = status.version[:VERSION_CHARACTERS].encode()
        self._own["loaded_at"] = status.loaded_at
        self._own["looked_at"] = status.looked_at
        self._own["failures"] = self._failures_before + status.failures

    def collect(self) -> Iterator[Metric]:
        """Return the sums of all workers, as prometheus_client writes them. Series without a count are left out."""
        rows = self._rows
        requests = CounterMetricFamily(f"{PREFIX}_requests", "Requests answered.", labels=["route", "status"])
        waited = "Time to answer a request, without those refused with 429."
        seconds = HistogramMetricFamily(f"{PREFIX}_request_seconds", waited, labels=["route"])
        timed = "Time of a request's phase."
        phases = HistogramMetricFamily(f"{PREFIX}_phase_seconds", timed, labels=["route", "phase"])
        for path, route in self._routes.items():
            counts = rows["requests"][:, route].sum(axis=0)
            for status in np.flatnonzero(counts):
                requests.add_metric([path, str(COUNTED_STATUSES[status])], counts[status])
            _add_histogram(seconds, [path], SECONDS_BUCKETS, rows["seconds"][:, route])
            for number, phase in enumerate(PHASES):
                _add_histogram(phases, [path, phase], SECONDS_BUCKETS, rows["phases"][:, route, number])
        texts = HistogramMetricFamily(f"{PREFIX}_batch_texts", "Texts of a batch.", labels=())
        _add_histogram(texts, [], TEXTS_BUCKETS, rows["texts"])
        tokens = HistogramMetricFamily(f"{PREFIX}_batch_tokens", "Tokens of a batch.", labels=())
        _add_histogram(tokens, [], TOKENS_BUCKETS, rows["tokens"])
        yield from (requests, seconds, phases, texts, tokens)
        yield GaugeMetricFamily(f"{PREFIX}_queued_tokens", "Tokens that wait for the model.", rows["queued"].sum())
        yield GaugeMetricFamily(f"{PREFIX}_connections", "Open connections.", rows["connections"].sum())
        left = "Requests dropped because their caller hung up."
        yield CounterMetricFamily(f"{PREFIX}_callers_left", left, rows["left"].sum())
        if self.keys is not None:
            failed = "Times that the API keys were not read again from AWS."
            yield CounterMetricFamily(f"{PREFIX}_keys_failures", failed, self.keys.failures)
        if self.filters is not None:
            unusable = "API keys whose filter does not fit the bundle, as the worker that answers found it."
            yield GaugeMetricFamily(f"{PREFIX}_keys_unusable", unusable, len(self.filters.reasons()))
        yield from self._bundles()

    def _bundles(self) -> Iterator[Metric]:
        rows = self._rows[self._rows["version"] != b""]
        workers = GaugeMetricFamily(f"{PREFIX}_bundle_workers", "Workers that serve a version.", labels=["version"])
        for version, count in zip(*np.unique(rows["version"], return_counts=True), strict=True):
            workers.add_metric([version.decode()], count)
        yield workers
        failed = "Polls that failed, or that found a bundle that cannot be served."
        yield CounterMetricFamily(f"{PREFIX}_bundle_failures", failed, self._rows["failures"].sum())
        if self._updates is not None:
            failed = "Updates of the index that failed."
            yield CounterMetricFamily(f"{PREFIX}_index_failures", failed, self._updates.failures)
        if len(rows):
            loaded = "Unix time when the version was loaded, of the worker that loaded it first."
            yield GaugeMetricFamily(f"{PREFIX}_bundle_loaded_timestamp_seconds", loaded, rows["loaded_at"].min())
            looked = "Seconds since a worker last found that it serves the current bundle, of the worker with the most."
            yield GaugeMetricFamily(f"{PREFIX}_bundle_seconds_since_look", looked, time() - rows["looked_at"].min())

    def _route(self, path: str) -> int:
        if path in self._routes:
            return self._routes[path]
        matching = (route for pattern, route in self._patterns if pattern.match(path))
        return next(matching, self._routes[OTHER])


def _row_of(routes: int) -> np.dtype[np.void]:
    """Return what a worker counts. A histogram has a count for each bucket and one for larger values, and the sum."""
    fields: list[tuple[Any, ...]] = [
        ("requests", np.float64, (routes, len(COUNTED_STATUSES))),
        ("seconds", np.float64, (routes, len(SECONDS_BUCKETS) + 2)),
        ("phases", np.float64, (routes, len(PHASES), len(SECONDS_BUCKETS) + 2)),
        ("texts", np.float64, len(TEXTS_BUCKETS) + 2),
        ("tokens", np.float64, len(TOKENS_BUCKETS) + 2),
        ("queued", np.float64),
        ("connections", np.float64),
        ("left", np.float64),
        ("version", f"S{VERSION_CHARACTERS}"),
        ("failures", np.float64),
        ("loaded_at", np.float64),
        ("looked_at", np.float64),
    ]
    return np.dtype(fields)


def _observe(histogram: NDArray[np.float64], bounds: Sequence[float], value: float) -> None:
    histogram[bisect_left(bounds, value)] += 1
    histogram[-1] += value


def _add_histogram(
    family: HistogramMetricFamily, labels: Sequence[str], bounds: Sequence[float], rows: NDArray[np.float64]
) -> None:
    """Add the sum of the workers' histograms, a row each, to a family, unless nothing was counted."""
    summed = rows.sum(axis=0)
    cumulative = summed[:-1].cumsum()
    if cumulative[-1]:
        names = [*(str(float(bound)) for bound in bounds), "+Inf"]
        family.add_metric(labels, [*zip(names, cumulative, strict=True)], summed[-1])
