"""The event that every measurement sends: the sample of an HTTP API in deploy/events, with another path and body."""

import json
from typing import Any

from bench.folders import PROJECT

SAMPLE = PROJECT / "deploy" / "events" / "http-api.json"


class Context:
    """The part of Lambda's context object that the handler reads."""

    function_name = "bench"
    memory_limit_in_mb = 512
    aws_request_id = "00000000-0000-0000-0000-000000000000"
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:bench"


def sample_event(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the event of a POST with this JSON body, or of a GET where body is None."""
    event: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    method = "GET" if body is None else "POST"
    event["routeKey"] = event["requestContext"]["routeKey"] = f"{method} {path}"
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["body"] = None if body is None else json.dumps(body)
    event["headers"]["content-length"] = str(len((event["body"] or "").encode()))
    return event
