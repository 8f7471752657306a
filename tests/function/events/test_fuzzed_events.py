"""Events with any field changed, removed or added: the handler fails for queues alone, and every reply has its shape.

Each kind of event is tried 50 times. `python -m pytest tests/function/events/test_fuzzed_events.py
--hypothesis-profile=thorough` tries each kind 2,000 times, 18,000 events in all.
"""

import copy
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.events import QueueError
from tests.function.events.event_makers import MAKERS, Event, agent_function, agent_operation

Maker = Callable[[str, str, str | None], Event]

REQUESTS = [
    ("POST", "/similar", '{"text": "goose", "num_results": 3}'),
    ("POST", "/similar", '{"text": ""}'),
    ("POST", "/predict", '{"text": ["goose", "ferry"]}'),
    *((method, "/health", None) for method in ("GET", "HEAD")),
    *(("GET", path, None) for path in ("/info", "/openapi.json", "/nothing")),
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
    agent_operation("POST", "/similar", {"text": "goose", "num_results": 3}),
    agent_operation("GET", "/passages/{id}", parameters={"id": "story-007", "before": 1}),
    agent_function("similar", {"text": "goose"}),
    {"type": "REQUEST", "methodArn": "arn", "resource": "/", "path": "/", "httpMethod": "GET", "requestContext": {}},
]

# names and values with a meaning to the handler, to Mangum or to the app
NAMES = [
    *("version", "requestContext", "http", "elb", "resource", "headers", "multiValueHeaders", "cookies", "body"),
    *("isBase64Encoded", "path", "rawPath", "httpMethod", "method", "stage", "identity", "sourceIp", "Records", "text"),
    *("queryStringParameters", "multiValueQueryStringParameters", "rawQueryString", "host", "x-forwarded-port"),
    *("x-forwarded-proto", "content-type", "content-length", "refusal", "log_as", "is_direct", "methodArn"),
    *("detail-type", "source", "raw_path", "serviceArn", "actionGroup", "apiPath", "function", "parameters"),
    "requestBody",
]
STRINGS = [
    *("", "2.0", "1.0", "x:abc", "[::1]:443", "443,80", "true", "%%%", "e30=", "\ud800", "żółć", "a\nb", "9" * 5000),
    *("/similar", "/health/", "GET", "HEAD", "POST", "post", "$default", "prod", "ftp", "{", "#", "%ED%A0%80", "/%ff"),
    *("//", "/?", "text/plain", "application/json; charset=\x00", "application/json\r\n"),
    "multipart/form-data; boundary=a",
]
strings = st.sampled_from(STRINGS) | st.text(st.characters(), max_size=8)  # with halves of surrogate pairs
names = st.sampled_from(NAMES) | strings
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def containers(value: object) -> Iterator[Any]:
    """Yield every list and object in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


@st.composite
def changed(draw: st.DrawFn, make: Maker | None) -> object:
    """Return an event with one to four changes anywhere in it. Without a maker, a fifth of the events are any JSON."""
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
    """Check that a source of events can read a reply, that it is not a 5xx, and that its JSON has the right shape."""
    if "messageVersion" in reply:  # an agent's names are returned as they were sent
        assert reply.keys() <= {"messageVersion", "response", "sessionAttributes", "promptSessionAttributes"}
        assert reply["response"].keys() & {"functionResponse", "responseBody"}
        json.dumps(reply)
        return
    json.dumps(reply, ensure_ascii=False).encode()  # as Lambda's runtime sends it
    assert reply.keys() <= {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"}
    assert isinstance(reply["statusCode"], int)
    assert 200 <= reply["statusCode"] < 500
    assert isinstance(reply["body"], str)
    assert reply["isBase64Encoded"] is False
    headers = reply.get("headers") or {name: value for name, (value,) in reply["multiValueHeaders"].items()}
    assert all(isinstance(value, str) for value in headers.values())
    assert headers["content-type"] in ("application/json", "text/html; charset=utf-8")  # the page at GET /
    assert "total;dur=" in headers["server-timing"]
    if reply["body"] and headers["content-type"] == "application/json":  # the reply to HEAD has no body
        content = json.loads(reply["body"])
        assert (content.keys() == {"error", "error_type"}) is (reply["statusCode"] >= 400)


@pytest.mark.parametrize("make", [*MAKERS, None], ids=[*(make.__name__ for make in MAKERS), "not HTTP"])
def test_any_event_is_answered_and_logged_in_one_line(
    answer: Callable[[object], dict[str, Any]], caplog: pytest.LogCaptureFixture, make: Maker | None
) -> None:
    caplog.set_level(logging.INFO, logger="tests")

    @settings(suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
    @given(event=changed(make))
    def check(event: object) -> None:
        caplog.clear()
        try:
            reply = answer(event)
        except QueueError:
            assert "aws:sqs" in repr(event)
            return
        check_reply(reply)
        (line,) = [record for record in caplog.records if record.name == "tests"]
        assert (line.levelname, line.exc_info) == ("INFO", None)

    check()
