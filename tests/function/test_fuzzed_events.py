"""Events with any field changed, removed or added: no exception leaves the handler, and every reply has its shape.

Each kind of event is tried 50 times. 2,000 times each, 12,000 events in all, are tried by
`python -m pytest tests/function/test_fuzzed_events.py --hypothesis-profile=thorough`.
"""

import copy
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.function.event_makers import (
    Event,
    function_url,
    http_api,
    load_balancer,
    load_balancer_with_lists,
    rest_api,
)

REQUESTS = [
    ("POST", "/similar", '{"text": "goose", "num_results": 3}'),
    ("POST", "/similar", '{"text": ""}'),
    ("POST", "/predict", '{"text": ["goose", "ferry"]}'),
    ("GET", "/health", None),
    ("HEAD", "/health", None),
    ("GET", "/info", None),
    ("GET", "/openapi.json", None),
    ("GET", "/nothing", None),
    ("PUT", "/similar", None),
]
OTHERS: list[Event] = [
    {"text": "goose", "num_results": 3},
    {"path": "/predict", "method": "POST", "body": {"text": "goose"}},
    {"warmer": True, "concurrency": 3},
    {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}, "resources": []},
    {"Records": [{"messageId": "a", "eventSource": "aws:sqs", "body": "goose", "attributes": {}}]},
    {"Records": [{"cf": {"request": {"method": "GET", "uri": "/health", "headers": {}, "body": {"data": ""}}}}]},
    {"requestContext": {"connectionId": "a=", "eventType": "CONNECT"}, "headers": {}, "isBase64Encoded": False},
    {"version": "2.0", "path": "/", "method": "GET", "headers": {}, "requestContext": {"serviceNetworkArn": "arn"}},
    {"type": "REQUEST", "methodArn": "arn", "resource": "/", "path": "/", "httpMethod": "GET", "requestContext": {}},
]
KINDS: dict[str, Callable[[str, str, str | None], object] | None] = {
    "HTTP API": http_api,
    "function URL": function_url,
    "REST API": rest_api,
    "load balancer": load_balancer,
    "load balancer with lists": load_balancer_with_lists,
    "not HTTP": None,
}

# names and values that mean something to the handler, to Mangum or to the app
NAMES = [
    *("version", "requestContext", "http", "elb", "resource", "headers", "multiValueHeaders", "cookies", "body"),
    *("isBase64Encoded", "path", "rawPath", "httpMethod", "method", "stage", "identity", "sourceIp", "Records", "text"),
    *("queryStringParameters", "multiValueQueryStringParameters", "rawQueryString", "host", "x-forwarded-port"),
    *("x-forwarded-proto", "content-type", "content-length", "refusal", "log_as", "methodArn", "detail-type", "source"),
]
STRINGS = [
    *(
        "",
        "2.0",
        "1.0",
        "x:abc",
        "[::1]:443",
        "443,80",
        "true",
        "%%%",
        "e30=",
        "\ud800",
        "żółć",
        "/similar",
        "/health/",
    ),
    *(
        "GET",
        "HEAD",
        "POST",
        "post",
        "$default",
        "prod",
        "text/plain",
        "application/json; charset=\x00",
        "ftp",
        "{",
        "#",
    ),
    *("%ED%A0%80", "/%ff", "//", "/?", "a\nb", "application/json\r\n", "9" * 5000, "multipart/form-data; boundary=a"),
]
strings = st.sampled_from(STRINGS) | st.text(st.characters(), max_size=8)  # halves of surrogate pairs too
names = st.sampled_from(NAMES) | strings
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def containers(value: object) -> Iterator[Any]:
    """Yield the value and all that is in it, if it can hold something."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


@st.composite
def changed(draw: st.DrawFn, kind: str) -> object:
    """An event of this kind with one to four changes anywhere in it; one in some is another value altogether."""
    make = KINDS[kind]
    if make is None and draw(st.integers(0, 4)) == 0:
        return draw(values)
    event = copy.deepcopy(draw(st.sampled_from(OTHERS)) if make is None else make(*draw(st.sampled_from(REQUESTS))))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(list(containers(event))))
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        change = draw(st.sampled_from(["replace", "replace", "remove", "add"])) if keys else "add"
        if change == "add" and isinstance(place, list):
            place.append(draw(values))
        elif change == "add":
            place[draw(names)] = draw(values)
        elif change == "remove":
            del place[draw(st.sampled_from(keys))]
        else:
            place[draw(st.sampled_from(keys))] = draw(values)
    return event


def check_reply(reply: dict[str, Any]) -> None:
    """A reply is one that API Gateway or a load balancer reads, not a 5xx; its JSON and its errors have their shape."""
    json.dumps(reply, ensure_ascii=False).encode()  # as Lambda's runtime sends it
    assert reply.keys() <= {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"}
    assert isinstance(reply["statusCode"], int)
    assert 200 <= reply["statusCode"] < 500
    assert isinstance(reply["body"], str)
    assert reply["isBase64Encoded"] is False
    headers = reply.get("headers") or {name: value for name, (value,) in reply["multiValueHeaders"].items()}
    assert all(isinstance(value, str) for value in headers.values())
    assert headers["content-type"] == "application/json"
    assert "total;dur=" in headers["server-timing"]
    if reply["body"]:  # HEAD has none
        content = json.loads(reply["body"])
        assert (content.keys() == {"error", "error_type"}) is (reply["statusCode"] >= 400)


class KeepingHandler(logging.Handler):
    """Adds to a list what is logged."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def lines(answer: Callable[[object], dict[str, Any]]) -> Iterator[list[logging.LogRecord]]:
    """All that is logged; caplog would keep the text of 2,000 events too."""
    records: list[logging.LogRecord] = []
    handler, logger = KeepingHandler(records), logging.getLogger("tests")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("kind", KINDS)
def test_any_event_is_answered_and_logged_in_one_line(
    answer: Callable[[object], dict[str, Any]], lines: list[logging.LogRecord], kind: str
) -> None:
    @settings(suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
    @given(event=changed(kind))
    def check(event: object) -> None:
        lines.clear()
        check_reply(answer(event))
        (line,) = lines
        assert (line.levelname, line.exc_info) == ("INFO", None)

    check()
