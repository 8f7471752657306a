"""The warm-up is a request like any other, but nobody is told of it."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from fastapi import FastAPI
from mangum import Mangum

from function.cold_start import ColdStart
from function.engine.embedder import Embedder, TokenIds
from function.settings import Settings
from function.warm_up import warm_up


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Have a loop for Mangum, which would make one and leave it open."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        yield
        asyncio.set_event_loop(None)


def starting(app: FastAPI) -> Mangum:
    """Give the handler of an app whose start is not over."""
    log, *_ = app.user_middleware  # the outermost
    cold_start = log.kwargs["cold_start"]
    assert isinstance(cold_start, ColdStart)
    cold_start.begin()
    return Mangum(app, lifespan="off")


def test_it_goes_through_everything_and_leaves_no_line(
    make_app: Callable[..., FastAPI], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    warm_up(starting(make_app()))
    assert [record for record in caplog.records if record.name == "tests"] == []


def test_a_text_larger_than_a_reply_may_be_is_no_failure(make_app: Callable[..., FastAPI]) -> None:
    warm_up(starting(make_app(settings=Settings(max_reply_bytes=100))))


def test_a_limit_too_small_for_any_request_is_one(make_app: Callable[..., FastAPI]) -> None:
    with pytest.raises(RuntimeError, match=r"warm-up: the handler answered 413, expected 200: .*body: "):
        warm_up(starting(make_app(settings=Settings(max_body_bytes=10))))


class BrokenEmbedder(Embedder):
    """An embedder whose model is gone."""

    def __init__(self, whole: Embedder) -> None:
        self.model = whole.model

    def tokenize(self, texts: object, role: str = "") -> list[TokenIds]:
        raise RuntimeError("the model is gone")


def test_one_that_is_not_answered_is_an_error_with_its_trace_in_the_log(
    make_app: Callable[..., FastAPI], embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    handler = starting(make_app(embedder=BrokenEmbedder(embedder)))
    with pytest.raises(RuntimeError, match=r"warm-up: the handler answered 500, expected 200: .*the request failed"):
        warm_up(handler)
    assert "the model is gone" in caplog.text
