"""A start is warmed up by a request that nobody hears of, reported once, and reported again after a restore."""

import asyncio
import gc
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mangum import Mangum
from snapshot_restore_py import get_after_restore

from function.startup import (
    WARM_UP,
    other_requests,
    warm_up,
    warm_up_after_restore,
    warm_up_body,
    warm_up_other_routes,
)
from semsearch.app.app import App, create_app
from semsearch.app.cold_start import ColdStart, no_garbage_collection
from semsearch.app.settings import Settings, read_settings
from semsearch.engine.bundle import COLUMNS
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load_bundle
from tests.app_fixtures import BrokenEmbedder, answering
from tests.function.events.event_makers import http_api
from tests.no_model import without
from tests.world import DIM


def test_no_garbage_is_collected_in_the_block_and_nothing_that_it_made_afterwards() -> None:
    frozen = gc.get_freeze_count()
    try:
        with no_garbage_collection():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Set an event loop for Mangum, which would make one and leave it open."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        yield
        asyncio.set_event_loop(None)


@pytest.fixture
def starting(make_app: Callable[..., App]) -> Callable[..., Mangum]:
    """Return what makes the handler of an app whose start is not over."""
    return lambda **changes: Mangum(make_app(cold_start=ColdStart(print), **changes), lifespan="off")


def test_it_goes_through_everything_and_leaves_no_line(
    starting: Callable[..., Mangum], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    warm_up(starting(settings=Settings(log_queries=True)))
    assert [record for record in caplog.records if record.name == "tests"] == []


def test_a_text_larger_than_a_reply_may_be_is_no_failure(starting: Callable[..., Mangum]) -> None:
    warm_up(starting(settings=Settings(max_reply_bytes=100)))


@pytest.mark.parametrize("has_words", [True, False])
def test_without_a_model_it_searches_by_a_vector_too(no_model: Path, no_model_no_words: Path, has_words: bool) -> None:
    bundle = load_bundle(no_model if has_words else no_model_no_words)
    body = warm_up_body(bundle)
    assert body == {"num_results": 1, "vector": [1] * DIM} | ({"text": "a"} if has_words else {})
    replies: list[dict[str, Any]] = []
    app = Mangum(create_app(bundle, Settings(), logging.getLogger("tests"), ColdStart(print)), lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        replies.append(app(event, context))
        return replies[-1]

    warm_up(handler, body)
    (reply,) = replies
    assert len(json.loads(reply["body"])["results"]) == 1
    assert ("keyword;dur=" in reply["headers"]["server-timing"]) == has_words


def test_with_a_model_it_sends_a_text_alone(bundle: Path) -> None:
    assert warm_up_body(load_bundle(bundle)) == {"text": "a", "num_results": 1} == json.loads(WARM_UP["body"])


def test_a_limit_too_small_for_any_request_is_one(starting: Callable[..., Mangum]) -> None:
    with pytest.raises(RuntimeError, match=r"warm-up: the handler answered 413, expected 200: .*body: "):
        warm_up(starting(settings=Settings(max_body_bytes=10)))


def test_a_search_that_fails_is_one_and_its_reason_is_logged(
    starting: Callable[..., Mangum], embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RuntimeError, match="warm-up: the handler answered 500, expected 200"):
        warm_up(starting(embedder=BrokenEmbedder(embedder)))
    assert "the model is gone" in caplog.text


@pytest.mark.parametrize(
    ("status", "timing", "succeeds"),
    [
        (200, "total;dur=1", True),
        (429, "total;dur=1", True),
        (502, "total;dur=1", True),
        (413, "search;dur=1, total;dur=1", True),
        (413, "total;dur=1", False),
        (500, "search;dur=1, total;dur=1", False),
        (401, "total;dur=1", False),
    ],
)
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_start_goes_on_if_the_request_was_answered_or_only_a_backend_is_down(
    status: int, timing: str, succeeds: bool, is_closed: bool
) -> None:
    events: list[dict[str, Any]] = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        events.append(event)
        assert context.aws_request_id is None
        return {"statusCode": status, "headers": {"server-timing": timing}, "body": "the reply"}

    if succeeds:
        warm_up(handler, is_closed=is_closed)
    else:
        with pytest.raises(RuntimeError, match=f"^warm-up: the handler answered {status}, expected 200: the reply$"):
            warm_up(handler, is_closed=is_closed)
    assert events == [{"text": "a", "num_results": 1} if is_closed else WARM_UP]


@pytest.mark.parametrize("name", ["bundle", "no_model", "no_model_no_words"])
@pytest.mark.parametrize("environment", [{"LOG_QUERIES": "1"}, {"API_KEYS": "sixteen-letters!"}], ids=["open", "keys"])
def test_the_other_requests_are_a_422_and_replies_of_mcp_of_the_page_and_of_a_search(
    name: str, environment: dict[str, str], request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    opened, logger = load_bundle(request.getfixturevalue(name)), logging.getLogger("tests")
    replies: list[dict[str, Any]] = []
    with answering(create_app(opened, read_settings(environment), logger, ColdStart(print))) as answer:

        def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
            replies.append(answer(event))
            return replies[-1]

        warm_up_other_routes(handler, logger, other_requests(opened))
    assert [reply["statusCode"] for reply in replies] == [422, 200, 200, 200]
    assert "text: input should be a valid string" in replies[0]["body"]
    assert '"tools":' in replies[1]["body"]
    assert replies[2]["headers"]["content-type"] == "text/html; charset=utf-8"
    (found,) = json.loads(replies[3]["body"])["results"]
    assert found["snippet"]["text"]
    assert caplog.records == []


def test_the_search_of_the_other_requests_has_a_filter_if_there_are_columns_and_a_word_if_words_are_found(
    bundle: Path, bundle_copy: Path, no_model_no_words: Path
) -> None:
    searches = [other_requests(load_bundle(each))[-1]["body"] for each in (bundle, no_model_no_words)]
    assert [search["filter"] for search in searches] == [{"chapter": {"$exists": True}}] * 2
    assert ["text" in search for search in searches] == [True, False]
    without(bundle_copy, COLUMNS, columns={})
    assert "filter" not in other_requests(load_bundle(bundle_copy))[-1]["body"]


def test_another_route_that_fails_is_logged_and_the_later_ones_are_warmed_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    statuses = {"/a": 499, "/b": 500, "/c": 502, "/d": 200}
    called: list[str] = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        called.append(event["path"])
        assert context.aws_request_id is None
        return {"statusCode": statuses[event["path"]]}

    warm_up_other_routes(handler, logging.getLogger("tests"), [{"path": path} for path in statuses])
    assert called == [*statuses]
    logged = [(record.getMessage(), *(vars(record)[name] for name in ("path", "status"))) for record in caplog.records]
    message = "other routes are not warmed up"
    assert logged == [(message, "/b", 500), (message, "/c", 502)]


def test_after_a_restore_the_handler_is_warmed_and_the_next_request_tells_of_it(make_app: Callable[..., App]) -> None:
    cold_start = ColdStart(print)
    handler = Mangum(make_app(cold_start=cold_start), lifespan="off")
    refreshed: list[bool] = []
    warm_up_after_restore(handler, cold_start, lambda: refreshed.append(not cold_start.is_over))
    cold_start.end({"import-engine": 1.0})
    hook, arguments, named = get_after_restore().pop()

    def timing() -> str:
        context: Any = SimpleNamespace(aws_request_id=None)
        reply = handler(http_api("GET", "/health", None), context)
        return str(reply["headers"]["server-timing"])

    assert timing().startswith("init-import-engine;dur=")
    hook(*arguments, **named)
    assert refreshed == [True]
    after_restore = timing()
    assert after_restore.startswith("init-restore-warm-up;dur=")
    assert "init-import-engine" not in after_restore
    assert timing().startswith("total;dur=")
