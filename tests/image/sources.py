"""The requests to the image, and the events that carry them: those of deploy/events/ with another request in them."""

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.project import ROOT

Event = dict[str, Any]
Request = tuple[str, str, str | None]  # method, path, body

REQUESTS: dict[str, Request] = {
    "similar": ("POST", "/similar", '{"text": "unpack all files of an archive", "num_results": 3}'),
    "similar in other scripts": ("POST", "/similar", '{"text": "żółć 東京 🦆", "num_results": 100}'),
    "predict one": ("POST", "/predict", '{"text": "square root"}'),
    "predict many": ("POST", "/predict", '{"text": ["square root", "a much longer text about a ferry and a goose"]}'),
    "health": ("GET", "/health", None),
    "info": ("GET", "/info", None),
    "openapi": ("GET", "/openapi.json", None),
    "page": ("GET", "/", None),
    "no route": ("GET", "/nothing", None),
    "another method": ("GET", "/similar", None),
    "too large": ("POST", "/similar", json.dumps({"text": "a" * 1024 * 1024})),
    "out of range": ("POST", "/similar", '{"text": "a", "num_results": 1000}'),
    "a missing field": ("POST", "/similar", "{}"),
    "not JSON": ("POST", "/similar", "{"),
    "no body": ("POST", "/predict", None),
}
STATUS = {
    **dict.fromkeys(("similar", "similar in other scripts", "predict one", "predict many", "health", "info"), 200),
    **{"openapi": 200, "page": 200, "no route": 404, "another method": 405, "too large": 413, "out of range": 422},
    **{"a missing field": 422, "not JSON": 400, "no body": 422},
}


def _read(name: str) -> Event:
    event: Event = json.loads((ROOT / "deploy" / "events" / f"{name}.json").read_text(encoding="utf-8"))
    return event


def _version_2(name: str) -> Callable[[Request], Event]:
    """An HTTP API's or a function URL's."""

    def make(request: Request) -> Event:
        method, path, body = request
        event = _read(name) | {"rawPath": path}
        event["requestContext"]["http"] |= {"method": method, "path": path}
        del event["body"]
        return event if body is None else event | {"body": body}  # absent, not null

    return make


def _rest_api(request: Request) -> Event:
    method, path, body = request
    event = _read("rest-api") | {"httpMethod": method, "path": path, "body": body}
    event["pathParameters"] = {"proxy": path.removeprefix("/")}
    event["requestContext"] |= {"httpMethod": method, "path": f"/prod{path}"}
    return event


def _load_balancer(request: Request) -> Event:
    method, path, body = request
    return _read("load-balancer") | {"httpMethod": method, "path": path, "body": body or ""}


def _load_balancer_with_lists(request: Request) -> Event:
    """One whose target group has multi-value headers turned on."""
    event = _load_balancer(request)
    event["multiValueHeaders"] = {name: [value] for name, value in event.pop("headers").items()}
    event["multiValueQueryStringParameters"] = event.pop("queryStringParameters")
    return event


SOURCES: dict[str, Callable[[Request], Event]] = {
    "http-api": _version_2("http-api"),
    "function-url": _version_2("function-url"),
    "rest-api": _rest_api,
    "load-balancer": _load_balancer,
    "load-balancer with lists": _load_balancer_with_lists,
}


def in_base64(event: Event) -> Event:
    """Return the same event with its body in base64, as API Gateway sends binary bodies."""
    return event | {"body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}


# Answers events in one process, through the handler itself. It logs to standard output, so the answers come last.
HANDLE = """
import json, sys
from function.handler import handler
print("\\n" + json.dumps([handler(event, None) for event in json.load(sys.stdin)]))
"""


def last_line(printed: str) -> Any:
    """Return the JSON of a script's last line."""
    return json.loads(printed.splitlines()[-1])
