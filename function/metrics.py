"""GET /metrics: what the server counted, for Prometheus; several workers count together through files that they map.

Imported after PROMETHEUS_MULTIPROC_DIR is set, because prometheus_client reads it once.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.routing import Route

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (8, 16, 32, 64, 128, 256, 512)
OTHER = "other"  # the route of all paths that are none: their number would grow with what callers invent


class Metrics:
    """Counts requests, phases and batches of this process; `text` is of all workers."""

    def __init__(self, is_shared: bool) -> None:
        """Count in files of PROMETHEUS_MULTIPROC_DIR if that is shared with other workers."""
        self._registry = registry = CollectorRegistry()
        self._routes: frozenset[str] = frozenset()
        self._requests = Counter(
            "semantic_search_requests", "Requests answered", ["route", "status"], registry=registry
        )
        self._latency = Histogram(
            "semantic_search_request_seconds",
            "From the first byte to the reply",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._phases = Histogram(
            "semantic_search_phase_seconds",
            "Phases of requests",
            ["route", "phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self._batch_texts = Histogram(
            "semantic_search_batch_texts", "Texts of a batch", buckets=TEXTS, registry=registry
        )
        self._batch_tokens = Histogram(
            "semantic_search_batch_tokens", "Tokens of a batch", buckets=TOKENS, registry=registry
        )
        self._queued = Gauge(
            "semantic_search_queued_tokens",
            "Tokens that wait for the model",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._left = Counter(
            "semantic_search_callers_left", "Requests dropped because the caller hung up", registry=registry
        )
        if is_shared:
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._children: dict[tuple[str, ...], Any] = {}  # of labels: looking them up in the library takes longer

    def count_request(self, fields: Mapping[str, Any]) -> None:
        """Count a request by the fields of its log line."""
        route = fields["path"] if fields["path"] in self._routes else OTHER
        self._child(self._requests, route, str(fields["status"])).inc()
        self._child(self._latency, route).observe(fields["milliseconds"] / 1e3)
        for phase, milliseconds in fields["phases"].items():
            self._child(self._phases, route, phase).observe(milliseconds / 1e3)

    def count_batch(self, texts: int, tokens: int, queued: int) -> None:
        """Count a batch, and remember how many tokens still wait."""
        self._batch_texts.observe(texts)
        self._batch_tokens.observe(tokens)
        self._queued.set(queued)

    def count_left(self) -> None:
        """Count a request whose caller hung up."""
        self._left.inc()

    def text(self) -> bytes:
        """Return all counts in Prometheus' text format."""
        return generate_latest(self._registry)

    def _child(self, metric: Counter | Histogram, *labels: str) -> Any:
        key = (metric._name, *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def add_route(self, app: FastAPI) -> None:
        """Add GET /metrics to the app, whose routes are known from then on."""

        @app.get(
            "/metrics",
            summary="Counts for Prometheus",
            response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        )
        async def metrics() -> Response:
            return Response(self.text(), media_type=CONTENT_TYPE_LATEST)

        self._routes = frozenset(route.path for route in app.routes if isinstance(route, Route))
