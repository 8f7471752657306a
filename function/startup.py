"""Parts of a start in Lambda: one warm-up request, requests to the other routes, and SnapStart's restore."""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from semsearch.app.cold_start import ColdStart
from semsearch.app.telemetry import Stopwatch

if TYPE_CHECKING:
    from semsearch.app.telemetry import Log
    from semsearch.engine.loading import AnyBundle

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

WARM_UP_BODY: dict[str, Any] = {"text": "a", "num_results": 1}  # an unknown longer word would load the corrections
WARM_UP: dict[str, Any] = {  # as API Gateway's HTTP API sends it, with only the fields that are read
    "version": "2.0",
    "routeKey": "POST /similar",
    "rawPath": "/similar",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}},
    "body": json.dumps(WARM_UP_BODY),
    "isBase64Encoded": False,
}
# Types of initialization in which Lambda runs INIT before a request arrives, so that no request waits for it:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
STARTED_AHEAD = ("provisioned-concurrency", "snap-start")
UNKNOWN_WORD = "qzxjwvqkzx"  # a word that no corpus has, so that a search loads the corrections of misspelled words


def warm_up_body(bundle: "AnyBundle") -> dict[str, Any]:
    """Return the body of the warm-up request. Without a model it has a vector, so that it searches by meaning too."""
    if bundle.embedder is not None:
        return WARM_UP_BODY
    vector = {"vector": [1] * bundle.manifest.model.dim}
    if bundle.manifest.corpus.keywords is None:
        return vector | {"num_results": 1}
    return WARM_UP_BODY | vector


def warm_up(handler: Handler, body: dict[str, Any] = WARM_UP_BODY, *, is_closed: bool = False) -> None:
    """Send one request with this body through the handler, so that all work that is done once is done during the start.

    is_closed: callers need a key or a token, so the request is a direct invocation, which needs none. Raises
    RuntimeError if the reply is an error.
    """
    event = body if is_closed else WARM_UP | {"body": json.dumps(body)}
    reply = handler(event, SimpleNamespace(aws_request_id=None))
    # a 413 is acceptable if the search ran: the text that it found is too long for a reply
    has_searched = reply["statusCode"] == 413 and "search;dur=" in reply["headers"]["server-timing"]
    # S3 Vectors being down must not stop the start: only /similar needs it
    is_of_backend = reply["statusCode"] in (429, 502)
    if reply["statusCode"] != 200 and not (has_searched or is_of_backend):
        raise RuntimeError(f"warm-up: the handler answered {reply['statusCode']}, expected 200: {reply['body']}")


def other_requests(bundle: "AnyBundle") -> list[dict[str, Any]]:
    """Return requests that load what a start without them leaves to later requests, as direct invocations.

    In this order: FastAPI by a body that gets a 422, MCP with the columns of its description, the page, and
    a search with corrections, highlights and, in a bundle with columns, a filter. The reranker and the OpenAPI
    document are left out, because few callers need them.
    """
    search = warm_up_body(bundle) | {"highlights": True}
    if "text" in search:
        search["text"] = UNKNOWN_WORD
    for column in [*bundle.manifest.corpus.columns][:1]:
        search["filter"] = {column: {"$exists": True}}
    return [
        {"path": "/similar", "body": {"text": 0}},
        {"path": "/mcp", "body": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
        {"path": "/", "method": "GET"},
        {"path": "/similar", "body": search},
    ]


def warm_up_other_routes(handler: Handler, logger: "Log", requests: Sequence[dict[str, Any]]) -> None:
    """Send the requests of `other_requests` through the handler.

    A failure, such as an import that fails, does not stop the start, because plain searches do not need these routes.
    The app logs its trace, and this function the path and the status.
    """
    for event in requests:
        status = handler(event, SimpleNamespace(aws_request_id=None))["statusCode"]
        if status >= 500:
            logger.error("other routes are not warmed up", extra={"path": event["path"], "status": status})


def warm_up_after_restore(
    handler: Handler,
    cold_start: ColdStart,
    refresh: Callable[[], None],
    body: dict[str, Any] = WARM_UP_BODY,
    *,
    is_closed: bool = False,
) -> None:
    """Register a warm-up with Lambda SnapStart, which restores this process instead of starting another.

    A restored process loads its memory page by page as it is used. So after each restore the handler answers one
    request before the first real one, and then `refresh` is called. The next request reports the restore instead of
    the start.
    """
    from snapshot_restore_py import register_after_restore

    def after_restore() -> None:
        stopwatch = Stopwatch()
        cold_start.begin()
        warm_up(handler, body, is_closed=is_closed)
        refresh()
        stopwatch.lap("restore-warm-up")
        cold_start.end(stopwatch.phases)

    register_after_restore(after_restore)
