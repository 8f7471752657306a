"""HTTP events with a field that AWS would not send: each is served or refused with a 400, and never an exception."""

import base64
import copy
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.function.event_makers import (
    MAKERS,
    Event,
    http_api,
    load_balancer,
    load_balancer_with_lists,
    rest_api,
)

Answer = Callable[[object], dict[str, Any]]

MISSING = object()
QUESTION = '{"text": "goose"}'
every_event = pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])


def changed(event: Event, where: str, value: object) -> Event:
    """Return a copy with another value at a place such as "requestContext.http.path", or without it."""
    event = copy.deepcopy(event)
    fields = event
    *parents, name = where.split(".")
    for parent in parents:
        fields = fields[parent]
    if value is MISSING:
        del fields[name]
    else:
        fields[name] = value
    return event


def error(reply: dict[str, Any]) -> str:
    """Return the message of a refusal, after a look at its shape."""
    assert reply["statusCode"] == 400, reply
    content = json.loads(reply["body"])
    assert content.keys() == {"error", "error_type"}
    assert content["error_type"] == "bad_request"
    message: str = content["error"]
    assert "\n" not in message
    return message


# The header that is odd but needed by nobody, and what is left out.
SERVED: list[tuple[str, Callable[..., Event], str, object]] = [
    *(
        (f"{make.__name__}: host {host}", make, "headers", {"content-type": "application/json", "Host": host})
        for make in (http_api, rest_api, load_balancer)
        for host in ("x:abc", "[::1]:443", "[::1]", "x:", ":", "x:99999999999", "localhost:3000", "")
    ),
    *(
        (
            f"{make.__name__}: port {port}",
            make,
            "headers",
            {"content-type": "application/json", "x-forwarded-port": port},
        )
        for make in (http_api, rest_api, load_balancer)
        for port in ("443,80", "443, 80", "", "https", "9" * 5000, "٣")
    ),
    ("a header null", http_api, "headers", {"content-type": "application/json", "accept": None}),
    ("a header in other scripts", http_api, "headers", {"content-type": "application/json", "x-name": "żółć"}),
    ("names in capitals", http_api, "headers", {"CONTENT-TYPE": "application/json"}),
    ("no query", http_api, "rawQueryString", None),
    ("query missing", http_api, "rawQueryString", MISSING),
    ("a query", http_api, "rawQueryString", "a=b&a=%ff&żółć"),
    ("no cookies", http_api, "cookies", None),
    ("cookies", http_api, "cookies", ["a=b", "c=d"]),
    ("stage null", http_api, "requestContext.stage", None),
    ("caller missing", http_api, "requestContext.http.sourceIp", MISSING),
    ("base64 null", http_api, "isBase64Encoded", None),
    ("base64 missing", rest_api, "isBase64Encoded", MISSING),
    ("identity null", rest_api, "requestContext.identity", None),
    ("identity missing", rest_api, "requestContext.identity", MISSING),
    ("no lists of headers", rest_api, "multiValueHeaders", None),
    ("no plain headers", rest_api, "headers", None),
    ("a list of a header null", rest_api, "multiValueHeaders", {"content-type": ["application/json"], "accept": None}),
    ("queries", rest_api, "multiValueQueryStringParameters", {"a": ["b", "c"], "d": None}),
    ("a query null", rest_api, "queryStringParameters", {"a": None, "b": "c"}),
    ("queries null", load_balancer, "queryStringParameters", None),
    ("path null in lists", load_balancer_with_lists, "multiValueQueryStringParameters", None),
]


@pytest.mark.parametrize(("make", "where", "value"), [case[1:] for case in SERVED], ids=[case[0] for case in SERVED])
def test_an_odd_field_that_no_route_needs_does_not_matter(
    answer: Answer, make: Callable[..., Event], where: str, value: object
) -> None:
    event = changed(make("POST", "/similar", QUESTION), where, value)
    reply = answer(event)
    assert (reply["statusCode"], reply["body"]) == (200, answer(make("POST", "/similar", QUESTION))["body"])


@every_event
def test_an_event_without_headers_is_a_request_without_headers(answer: Answer, make: Callable[..., Event]) -> None:
    nothing: list[object] = [None, {}]
    for value in nothing:
        event = make("GET", "/health", None) | dict.fromkeys(("headers", "multiValueHeaders"), value)
        assert answer(event)["statusCode"] == 200


COMPARE = "compare the event with the examples in the folder deploy/events/"
REFUSED: list[tuple[Callable[..., Event], str, object, str]] = [
    (http_api, "headers", [], "event.headers: found a list, expected an object; " + COMPARE),
    (http_api, "headers.accept", 5, "event.headers.accept: found a number, expected a string; "),
    (http_api, "headers.accept", ["*"], "event.headers.accept: found a list, expected a string; "),
    (http_api, "headers.accept", "\ud800", "event.headers.accept: found half of a surrogate pair as character 0, "),
    (http_api, "headers", {"\ud800": "a"}, "event: the name \\ud800: found half of a surrogate pair"),
    (http_api, "cookies", "a=b", "event.cookies: found a string, expected a list of strings; "),
    (http_api, "cookies", [5], "event.cookies: found a number, expected strings in the list; "),
    (http_api, "rawQueryString", 5, "event.rawQueryString: found a number, expected a string; "),
    (http_api, "rawQueryString", "\udfff", "event.rawQueryString: found half of a surrogate pair"),
    (http_api, "body", {"text": "goose"}, "event.body: found an object, expected a string"),
    (http_api, "body", 5, "event.body: found a number, expected a string"),
    (http_api, "body", False, "event.body: found a boolean, expected a string"),
    (http_api, "body", '{"text": "\ud800"}', "event.body: found half of a surrogate pair as character 10, expected "),
    (http_api, "isBase64Encoded", "true", "event.isBase64Encoded: found a string, expected true or false; "),
    (http_api, "isBase64Encoded", 0, "event.isBase64Encoded: found a number, expected true or false; "),
    (http_api, "requestContext", None, "event.requestContext: found nothing, expected an object; "),
    (http_api, "requestContext", MISSING, "event.requestContext: found nothing, expected an object; "),
    (http_api, "requestContext", "", "event.requestContext: found a string, expected an object; "),
    (http_api, "requestContext", {}, "event: found an HTTP request without "),
    (http_api, "requestContext.http", None, "event.requestContext.http.method: found nothing, expected a string; "),
    (http_api, "requestContext.http", [], "event.requestContext.http: found a list, expected an object; "),
    (http_api, "requestContext.http.path", MISSING, "event.requestContext.http.path: found nothing, expected a string"),
    (http_api, "requestContext.http.method", 5, "event.requestContext.http.method: found a number, expected a string"),
    (http_api, "requestContext.stage", ["a"], "event.requestContext.stage: found a list, expected a string; "),
    (http_api, "version", 2, "event: found an HTTP request without "),
    (rest_api, "requestContext", None, "event.requestContext: found nothing, expected an object; "),
    (rest_api, "requestContext.identity", "me", "event.requestContext.identity: found a string, expected an object; "),
    (rest_api, "httpMethod", None, "event.httpMethod: found nothing, expected a string; "),
    (rest_api, "path", 5, "event.path: found a number, expected a string; "),
    (rest_api, "path", "/\ud800", "event.path: found half of a surrogate pair as character 1, "),
    (rest_api, "multiValueHeaders", "a", "event.multiValueHeaders: found a string, expected an object; "),
    (
        rest_api,
        "multiValueHeaders",
        {"a": "b"},
        "event.multiValueHeaders.a: found a string, expected a list of strings",
    ),
    (rest_api, "queryStringParameters", {"a": 5}, "event.queryStringParameters.a: found a number, expected strings"),
    (rest_api, "queryStringParameters", {"a": "\ud800"}, "event.queryStringParameters.a: found half of a surrogate"),
    (load_balancer, "path", MISSING, "event.path: found nothing, expected a string; "),
    (load_balancer, "httpMethod", MISSING, "event.httpMethod: found nothing, expected a string; "),
    (load_balancer, "queryStringParameters", [], "event.queryStringParameters: found a list, expected an object; "),
    (
        load_balancer_with_lists,
        "multiValueHeaders",
        {"a": [None]},
        "event.multiValueHeaders.a: found nothing, expected ",
    ),
]


@pytest.mark.parametrize(
    ("make", "where", "value", "message"),
    REFUSED,
    ids=[
        f"{make.__name__}: {where} {value!r:.20}".replace(repr(MISSING)[:20], "missing")
        for make, where, value, _ in REFUSED
    ],
)
def test_an_event_that_cannot_be_read_is_refused_with_the_field_and_what_is_expected(
    answer: Answer, make: Callable[..., Event], where: str, value: object, message: str
) -> None:
    assert error(answer(changed(make("POST", "/similar", QUESTION), where, value))).startswith(message)


@every_event
@pytest.mark.parametrize("body", ["%%%", "a", "żółć", "eyJ0ZXh0IjogImdvb3NlIn0=%", "eyJ0ZXh0\nIjogImdvb3NlIn0="])
def test_characters_that_are_not_base64_are_refused(answer: Answer, make: Callable[..., Event], body: str) -> None:
    event = make("POST", "/similar", body) | {"isBase64Encoded": True}
    expected = (
        'body: not base64, though isBase64Encoded is true; expected JSON in UTF-8, such as {"text": "some words"}'
    )
    assert error(answer(event)) == f"{expected}, in base64"


@every_event
def test_a_body_in_base64_is_read(answer: Answer, make: Callable[..., Event]) -> None:
    event = make("POST", "/similar", base64.b64encode(QUESTION.encode()).decode()) | {"isBase64Encoded": True}
    assert answer(event)["statusCode"] == 200


@every_event
def test_a_refusal_has_the_form_that_its_source_reads(answer: Answer, make: Callable[..., Event]) -> None:
    headers = "multiValueHeaders" if make is load_balancer_with_lists else "headers"
    reply = answer(make("POST", "/similar", "") | {"body": 5})
    assert reply["statusCode"] == 400
    assert reply["isBase64Encoded"] is False
    assert {"content-type", "server-timing"} <= reply[headers].keys()


def test_a_refused_event_is_logged_in_one_line(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    answer(http_api("POST", "/similar", "") | {"body": 5})
    (record,) = [record for record in caplog.records if record.name == "tests"]
    line = vars(record)
    assert (record.levelname, record.message) == ("INFO", "event refused")
    assert (line["method"], line["path"], line["status"], line["request_id"]) == ("POST", "/similar", 400, "c6af9ac6")
    assert line["error"].startswith("event.body: found a number")


def test_a_refusal_shows_no_value_of_the_event(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    reply = answer(http_api("POST", "/similar", "") | {"body": {"password": "hunter2"}, "headers": {"a": ["hunter2"]}})
    assert "hunter2" not in reply["body"] + repr([vars(record) for record in caplog.records])


def test_a_long_name_is_shown_in_part(answer: Answer) -> None:
    assert len(error(answer(changed(http_api("GET", "/health", None), "headers", {"a" * 100_000: 5})))) < 300


def test_a_header_that_came_twice_is_joined(answer: Answer) -> None:
    event = rest_api("POST", "/similar", QUESTION)
    event["multiValueHeaders"] = {"content-type": ["text/plain", "text/html"]}
    assert "'text/plain, text/html'" in json.loads(answer(event)["body"])["error"]


@every_event
def test_the_host_and_the_scheme_do_not_matter_to_an_error(answer: Answer, make: Callable[..., Event]) -> None:
    odd = {"host": "[", "x-forwarded-proto": "ftp"}
    lists = {name: [value] for name, value in odd.items()}
    for headers in ({"headers": odd}, {"headers": None, "multiValueHeaders": lists}):
        for path, status in (("/nothing", 404), ("/similar", 405)):
            assert answer(make("GET", path, None) | headers)["statusCode"] == status
