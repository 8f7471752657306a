"""The requests to the image, and the events that carry them."""

import gzip
import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from tests.function.events.event_makers import MAKERS, Event, taking_gzip

Request = tuple[str, str, str | None]  # method, path, body
GZIP = "H4sI"  # how its first bytes begin in base64

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
    "too large": ("POST", "/predict", json.dumps({"text": ["a" * 60_000] * 10})),
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


SOURCES: dict[str, Callable[[Request], Event]] = {
    make.__name__.replace("_", "-"): lambda request, make=make: taking_gzip(make(*request))  # type: ignore[misc]
    for make in MAKERS
}


# Answers events in one process, through the handler itself. It logs to standard output, so the answers come last.
HANDLE = """
import json, sys
from function.handler import handler
print("\\n" + json.dumps([handler(event, None) for event in json.load(sys.stdin)]))
"""


def last_line(printed: str) -> Any:
    """Return the JSON of a script's last line."""
    return json.loads(printed.splitlines()[-1])


def comparable(body: str) -> object:
    """Return a body as it is, unpacked; of /info, what does not depend on the start, the interpreter or the image."""
    if body.startswith(GZIP):
        return gzip.decompress(b64decode(body)).decode()
    if not body.startswith("{"):
        return body
    content = json.loads(body)
    if "cold_start_milliseconds" not in content:
        return body
    del content["cold_start_milliseconds"], content["versions"]["python"], content["archive"], content["made"]
    content.pop("image", None)
    return content
