"""SnapStart restores a started process: the hooks of Lambda's own package, in a process of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
EVENT = {
    "version": "2.0",
    "routeKey": "GET /health",
    "rawPath": "/health",
    "rawQueryString": "",
    "headers": {},
    "requestContext": {"http": {"method": "GET", "path": "/health", "sourceIp": "203.0.113.7"}},
    "isBase64Encoded": False,
}


def test_after_a_restore_the_handler_is_warmed_and_the_next_request_tells_of_it(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    script = RESTORE.format(event=EVENT)
    found = in_a_new_process(script, BUNDLE_DIR=str(bundle), AWS_LAMBDA_INITIALIZATION_TYPE="snap-start")
    hooks, after_restore, later = found
    assert hooks == 1
    assert after_restore.startswith("init-restore-warm-up;dur=")
    assert "init-import-engine" not in after_restore
    assert later.startswith("total;dur=")


def test_without_snap_start_there_is_no_hook(in_a_new_process: Callable[..., Any], bundle: Path) -> None:
    hooks, _, _ = in_a_new_process(RESTORE.format(event=EVENT), BUNDLE_DIR=str(bundle))
    assert hooks == 0
