"""A process's start: without garbage collection, warmed up by one request, reported once, restored by SnapStart."""

import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from function.telemetry import Report, Stopwatch

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

WARM_UP: dict[str, Any] = {  # as API Gateway's HTTP API sends it, with only the fields that are read
    "version": "2.0",
    "routeKey": "POST /similar",
    "rawPath": "/similar",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}},
    "body": json.dumps({"text": "warm up", "num_results": 1}),
    "isBase64Encoded": False,
}


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect no garbage in the block: imports make many objects and hardly any garbage.

    What exists at the end is taken for permanent and never examined again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class ColdStart:
    """What is known of this process's start. The first request after it reports it, once."""

    def __init__(self, report: Report) -> None:
        """Requests are warm-ups, answered and not logged, until `end`."""
        self.report = report
        self.phases: Mapping[str, float] = {}  # milliseconds
        self.is_over = False
        self._is_reported = False

    def begin(self) -> None:
        """Take requests for warm-ups again, until `end`."""
        self.is_over = False

    def end(self, phases: Mapping[str, float]) -> None:
        """Remember the start's phases, in milliseconds, for the next request to report."""
        self.phases = dict(phases)
        self.is_over = True
        self._is_reported = False

    def take(self) -> Mapping[str, float]:
        """Return the phases to the first request after the start, and nothing to every other."""
        if not self.is_over or self._is_reported:
            return {}
        self._is_reported = True
        return self.phases


def warm_up(handler: Handler, api_keys: Sequence[str] = ()) -> None:
    """Send one request through the handler, so that what is done once is done while starting.

    It carries the first of the API keys, if there are any.
    Raises RuntimeError if it is not answered: better now than at the first request.
    """
    credentials = {"authorization": f"Bearer {api_keys[0]}"} if api_keys else {}
    event = WARM_UP | {"headers": WARM_UP["headers"] | credentials}
    reply = handler(event, SimpleNamespace(aws_request_id=None))
    # the one text found may be too long for a reply: its phases show that the search ran all the same
    has_searched = reply["statusCode"] == 413 and "search;dur=" in reply["headers"]["server-timing"]
    # nor does a service that has the texts, and does not answer now, hinder the routes that do not ask it
    is_of_backend = reply["statusCode"] in (424, 429)
    if reply["statusCode"] != 200 and not (has_searched or is_of_backend):
        raise RuntimeError(f"warm-up: the handler answered {reply['statusCode']}, expected 200: {reply['body']}")


def warm_up_after_restore(
    handler: Handler,
    cold_start: ColdStart,
    api_keys: Sequence[str] = (),
    restored: Callable[[], None] = lambda: None,
) -> None:
    """Register with Lambda SnapStart, which keeps the started process and restores it instead of starting another.

    After each restore the handler answers one request before the first real one: a restored process reads its memory
    page by page as it is used. The next request reports the restore in place of the start. `restored` is called after
    that.
    """
    from snapshot_restore_py import register_after_restore

    def after_restore() -> None:
        stopwatch = Stopwatch()
        cold_start.begin()
        warm_up(handler, api_keys)
        stopwatch.lap("restore-warm-up")
        cold_start.end(stopwatch.phases)
        restored()

    register_after_restore(after_restore)
