"""GET /health embeds a text, once a minute at most: in the server and behind Lambda's events."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.routes import status
from semsearch.app.settings import Settings
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Embeddings
from semsearch.server.asgi import make_app
from tests.function.events.event_makers import http_api

HEALTH: dict[str, Any] = http_api("GET", "/health", None)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts in each batch since the test began."""
    batches: list[int] = []
    embed_batch = Embedder.embed_batch

    def count(self: Embedder, ids: list[list[int]]) -> Embeddings:
        batches.append(len(ids))
        return embed_batch(self, ids)

    monkeypatch.setattr(Embedder, "embed_batch", count)
    return batches


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what lets seconds pass on the clock of the checks."""
    return lambda seconds: monkeypatch.setattr(status, "monotonic", lambda: time.monotonic() + seconds)


@pytest.fixture
def server(bundle: Path) -> httpx.AsyncClient:
    """A client of the server's app."""
    app = make_app(Settings(bundle_dir=bundle), 1, 10**6)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://tests")


def test_a_check_embeds_if_nothing_was_embedded_for_a_minute(
    answer: Callable[[object], dict[str, Any]], embedded: list[int], later: Callable[[float], None]
) -> None:
    assert answer(HEALTH)["statusCode"] == 200
    later(59)
    answer(http_api("POST", "/predict", '{"text": "goose"}'))
    assert answer(HEALTH)["body"] == '{"status":"ok"}'
    assert embedded == [1]  # the request's
    later(61)
    assert answer(HEALTH)["statusCode"] == 200
    assert embedded == [1, 1]
    later(0)
    assert answer(HEALTH)["statusCode"] == 200
    assert embedded == [1, 1]


async def test_checks_at_the_same_time_embed_once(
    server: httpx.AsyncClient, embedded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_minute_later = time.monotonic() + status.SECONDS_BETWEEN_CHECKS
    monkeypatch.setattr(status, "monotonic", lambda: a_minute_later)
    replies = await asyncio.gather(*(server.get("/health") for _ in range(5)))
    assert {reply.status_code for reply in replies} == {200}
    assert embedded == [1]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda self, ids: 1 / 0, "(ZeroDivisionError: division by zero)"),
        (lambda self, ids: np.full((len(ids), 48), np.nan, np.float32), "(ValueError: the embedding has values"),
    ],
)
def test_a_model_that_cannot_embed_is_a_503_and_the_log_has_its_trace(
    answer: Callable[[object], dict[str, Any]],
    later: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    broken: Callable[..., Embeddings],
    reason: str,
) -> None:
    monkeypatch.setattr(Embedder, "embed_batch", broken)
    later(10**6)
    reply = answer(HEALTH)
    assert reply["statusCode"] == 503
    assert "model: cannot embed a text " + reason in reply["body"]
    assert '"error_type":"unhealthy"' in reply["body"]
    assert [record.message for record in caplog.records if record.exc_info] == ["the model failed its check"]


async def test_a_model_that_does_not_answer_in_time_is_a_503(
    server: httpx.AsyncClient, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def hang(self: Embedder, ids: Sequence[list[int]]) -> Embeddings:
        gate.wait(timeout=30)
        return np.zeros((len(ids), 48), np.float32)

    monkeypatch.setattr(Embedder, "embed_batch", hang)
    monkeypatch.setattr(status, "CHECK_TIMEOUT", 0.05)
    later(10**6)
    reply = await server.get("/health")
    gate.set()
    assert (reply.status_code, reply.json()["error_type"]) == (503, "unhealthy")
