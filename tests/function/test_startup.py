"""A start is warmed up by a request that nobody hears of, reported once, and reported again after a restore."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mangum import Mangum

from function.startup import warm_up
from semsearch.app.app import App
from semsearch.app.cold_start import ColdStart, no_garbage_collection
from semsearch.app.settings import Settings
from tests.function.events.event_makers import http_api


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
    warm_up(starting())
    assert [record for record in caplog.records if record.name == "tests"] == []


def test_a_text_larger_than_a_reply_may_be_is_no_failure(starting: Callable[..., Mangum]) -> None:
    warm_up(starting(settings=Settings(max_reply_bytes=100)))


def test_a_limit_too_small_for_any_request_is_one(starting: Callable[..., Mangum]) -> None:
    with pytest.raises(RuntimeError, match=r"warm-up: the handler answered 413, expected 200: .*body: "):
        warm_up(starting(settings=Settings(max_body_bytes=10)))


RESTORE = """
import contextlib, io, json
from snapshot_restore_py import get_after_restore
import function.handler
said = io.StringIO()
with contextlib.redirect_stdout(said):
    function.handler.handler({event!r}, None)
    for hook, arguments, named in get_after_restore():
        hook(*arguments, **named)
    second = function.handler.handler({event!r}, None)
    third = function.handler.handler({event!r}, None)
timings = [reply["headers"]["server-timing"] for reply in (second, third)]
print(json.dumps([len(list(get_after_restore())), *timings]))
"""


def test_after_a_restore_the_handler_is_warmed_and_the_next_request_tells_of_it(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    script = RESTORE.format(event=http_api("GET", "/health", None))
    found = in_a_new_process(script, BUNDLE_DIR=str(bundle), AWS_LAMBDA_INITIALIZATION_TYPE="snap-start")
    hooks, after_restore, later = found
    assert hooks == 1
    assert after_restore.startswith("init-restore-warm-up;dur=")
    assert "init-import-engine" not in after_restore
    assert later.startswith("total;dur=")


def test_without_snap_start_there_is_no_hook(in_a_new_process: Callable[..., Any], bundle: Path) -> None:
    hooks, _, _ = in_a_new_process(RESTORE.format(event=http_api("GET", "/health", None)), BUNDLE_DIR=str(bundle))
    assert hooks == 0
