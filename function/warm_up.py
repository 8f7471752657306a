"""One request through everything before the first real one: what is done once is done while starting."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

WARM_UP = {  # as API Gateway's HTTP API sends it, no field more than is read
    "version": "2.0",
    "routeKey": "POST /similar",
    "rawPath": "/similar",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}},
    "body": json.dumps({"text": "warm up", "num_results": 1}),
    "isBase64Encoded": False,
}


def warm_up(handler: Callable[[dict[str, Any], Any], dict[str, Any]]) -> None:
    """Ask the handler once. Raises RuntimeError if it does not answer: better now than at the first request."""
    reply = handler(WARM_UP, SimpleNamespace(aws_request_id=None))
    # the one text that is found may be larger than a reply may be: all has been gone through, and others are not
    if reply["statusCode"] != 200 and '"error":"num_results' not in reply["body"]:
        raise RuntimeError(f"warm-up: the handler answered {reply['statusCode']}, expected 200: {reply['body']}")
