"""HTTP events: what the app receives, what the source receives, and fields that AWS would not send."""

import asyncio
import base64
import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from function.events import make_handler
from semsearch.app.app import App
from tests.function.events.event_makers import (
    MAKERS,
    Event,
    function_url,
    http_api,
    http_api_with_payload_1,
    lattice,
    lattice_1,
    load_balancer,
    load_balancer_with_lists,
    rest_api,
)

Answer = Callable[[object], dict[str, Any]]
See = Callable[..., dict[str, Any]]
Maker = Callable[[str, str, str | None], Event]

MISSING = object()
QUESTION = '{"text": "goose"}'
every_event = pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])


def changed(event: Event, where: str, value: object) -> Event:
    """Return a copy with another value at a place such as "requestContext.http.path", or without it."""
    event = fields = copy.deepcopy(event)
    *parents, name = where.split(".")
    for parent in parents:
        fields = fields[parent]
    fields[name] = value
    if value is MISSING:
        del fields[name]
    return event


def error(reply: dict[str, Any]) -> str:
    """Return the message of a 400."""
    assert reply["statusCode"] == 400, reply
    message, error_type = json.loads(reply["body"]).values()
    assert error_type == "bad_request"
    assert "\n" not in message
    return str(message)


async def show(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request."""
    request = Request(scope, receive)
    seen = {name: scope[name] for name in ("method", "path", "scheme", "client")} | dict(request.headers)
    seen |= {"query": request.query_params.multi_items(), "content": (await request.body()).decode()}
    await JSONResponse(seen)(scope, receive, send)


async def answer_with_a_picture(scope: Scope, receive: Receive, send: Send) -> None:
    reply = Response(b"\xff", media_type="image/png")
    reply.set_cookie("a")
    reply.set_cookie("b")
    await reply(scope, receive, send)


@pytest.fixture
def see(answer: Answer) -> See:
    """Return what shows the request that the app receives. `answer` has set the event loop."""
    context: Any = None
    return lambda event, base_path="/": json.loads(
        make_handler(show, base_path, is_closed=False)(event, context)["body"]
    )


QUERIES = [
    (http_api, {"rawQueryString": "a=b+c&%C5%BC=%2B"}),
    (function_url, {"rawQueryString": "a=b+c&%C5%BC=%2B"}),
    (http_api_with_payload_1, {"queryStringParameters": {"a": "b c", "ż": "+"}}),
    (rest_api, {"queryStringParameters": {"a": "b c", "ż": "+"}}),
    (load_balancer, {"queryStringParameters": {"a": "b+c", "%C5%BC": "%2B"}}),
    (load_balancer_with_lists, {"multiValueQueryStringParameters": {"a": ["b+c"], "%C5%BC": ["%2B"]}}),
    (lattice, {"queryStringParameters": {"a": ["b c"], "ż": ["+"]}}),
    (lattice_1, {"query_string_parameters": {"a": "b c", "ż": "+"}}),
]


@pytest.mark.parametrize(("make", "query"), QUERIES)
def test_the_app_receives_the_same_request_from_each_source(see: See, make: Maker, query: Event) -> None:
    expected = {
        **{"method": "PUT", "path": "/%/a%2Fb/ż", "content": "żółć", "query": [["a", "b c"], ["ż", "+"]]},
        **{"scheme": "https", "client": ["203.0.113.7", 0]},
        **{"host": "stories.example.com", "content-type": "application/json", "x-forwarded-proto": "https"},
    }
    encoded = base64.b64encode("żółć".encode()).decode()
    for body, is_base64 in (("żółć", False), (encoded, True)):
        flags = dict.fromkeys(("isBase64Encoded", "is_base64_encoded"), is_base64)
        seen = see(make("PUT", "/%25/a%252Fb/ż", body) | query | flags)
        seen.pop("x-forwarded-for", None)
        assert seen == expected


@pytest.mark.parametrize(
    ("make", "fields", "expected"),
    [
        (http_api, {"headers": {"X": "a"}}, {"x": "a"}),
        (http_api, {"headers": {"Cookie": "a=b"}, "cookies": ["c=d", "e=f"]}, {"cookie": "c=d; e=f"}),
        (rest_api, {"headers": {"X": "b"}, "multiValueHeaders": {"X": ["a", "b"]}}, {"x": "a, b"}),
        (rest_api, {"headers": {"X": "a", "Y": "c"}, "multiValueHeaders": {"x": ["b"]}}, {"x": "b", "y": "c"}),
        (load_balancer_with_lists, {"multiValueHeaders": {"x": ["a", "b"]}}, {"x": "a, b"}),
        (lattice, {"headers": {"X": ["a", "b"]}}, {"x": "a, b"}),
        (lattice, {"queryStringParameters": {"a": ["b", "c"]}}, {"query": [["a", "b"], ["a", "c"]]}),
        (rest_api, {"multiValueQueryStringParameters": {"a": ["b", "c"]}}, {"query": [["a", "b"], ["a", "c"]]}),
        (rest_api, {"queryStringParameters": {"a": None, "b": "c"}}, {"query": [["b", "c"]]}),
        (load_balancer, {"multiValueQueryStringParameters": {"a": ["b", "c"]}}, {"query": [["a", "b"], ["a", "c"]]}),
    ],
)
def test_several_values_of_one_name_are_all_received(
    see: See, make: Maker, fields: Event, expected: dict[str, object]
) -> None:
    seen = see(make("GET", "/", None) | fields)
    assert {name: seen.get(name) for name in expected} == expected


@pytest.mark.parametrize("make", [lattice, lattice_1])
def test_the_path_of_vpc_lattice_can_have_the_query_string(see: See, make: Maker) -> None:
    seen = see(make("GET", "/a%3Fb?before=2&c=%C5%BC", None))
    assert (seen["path"], seen["query"]) == ("/a?b", [["before", "2"], ["c", "ż"]])


@pytest.mark.parametrize(
    ("path", "stage", "base_path", "expected"),
    [
        *((path, "prod", "/", "/similar") for path in ("/prod/similar", "/similar", "/pr%6fd/similar")),
        *((path, "similar", "/", "/") for path in ("/similar", "/similar/", "", "/")),
        ("/production/similar", "prod", "/", "/production/similar"),
        ("/similar", "$default", "/", "/similar"),
        ("/$default/similar", "$default", "/", "/$default/similar"),
        ("/prod/base/similar", "prod", "/base", "/similar"),
    ],
)
def test_the_stage_of_an_http_api_is_removed_before_the_base_path(
    see: See, path: str, stage: str, base_path: str, expected: str
) -> None:
    for make in (http_api, http_api_with_payload_1):
        event = changed(make("GET", path, None), "requestContext.stage", stage)
        assert see(event, base_path)["path"] == expected


def test_the_path_of_a_rest_api_has_no_stage(see: See) -> None:
    assert see(rest_api("GET", "/prod/similar", None))["path"] == "/prod/similar"


@pytest.mark.parametrize(
    ("path", "base_path", "expected"),
    [
        *(("/base/similar", base_path, "/similar") for base_path in ("/base", "/base/")),
        ("/predict", "/p", "/predict"),
        ("/basement/similar", "/base", "/basement/similar"),
        ("/base/", "/base", "/"),
    ],
)
def test_the_base_path_is_removed_where_a_path_follows(see: See, path: str, base_path: str, expected: str) -> None:
    for make in MAKERS:
        assert see(make("GET", path, None), base_path)["path"] == expected


@every_event
def test_a_binary_reply_and_its_cookies_have_the_form_that_the_source_reads(answer: Answer, make: Maker) -> None:
    context: Any = None
    reply = make_handler(answer_with_a_picture, "/", is_closed=False)(make("GET", "/", None), context)
    assert (reply["statusCode"], reply["isBase64Encoded"], reply["body"]) == (200, True, "/w==")
    plain, lists = reply.get("headers", {}), reply.get("multiValueHeaders", {})
    repeated = [value for name, value in plain.items() if name.lower() == "set-cookie"]  # load balancer: in two cases
    cookies = reply.get("cookies") or lists.get("set-cookie") or repeated
    assert [cookie[0] for cookie in cookies] == ["a", "b"]
    assert ("headers" in reply) is (make is not load_balancer_with_lists)
    assert ("multiValueHeaders" in reply) is (make in (rest_api, http_api_with_payload_1, load_balancer_with_lists))


@pytest.mark.parametrize(
    ("method", "path", "is_closed", "has_loop"),
    [
        ("POST", "/similar", False, False),
        ("POST", "/predict", False, False),
        ("POST", "/similar", True, True),
        ("GET", "/similar", False, True),
        ("POST", "/", False, True),
    ],
)
def test_a_request_that_cannot_wait_is_answered_without_an_event_loop(
    answer: Answer, method: str, path: str, is_closed: bool, has_loop: bool
) -> None:
    found = []

    async def note_loop(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(asyncio._get_running_loop() is not None)
        await show(scope, receive, send)

    context: Any = None
    reply = make_handler(note_loop, "/", is_closed=is_closed)(http_api(method, path, "{}"), context)
    assert (reply["statusCode"], found) == (200, [has_loop])


@every_event
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/similar", '{"text": "goose"}', 200),
        ("/similar", '{"text": " "}', 422),
        ("/similar", "{", 400),
        ("/predict", '{"text": ["goose", "key"]}', 200),
        ("/predict", '{"text": []}', 422),
    ],
)
def test_replies_without_an_event_loop_are_those_of_mangum(
    make_app: Callable[..., App], answer: Answer, make: Maker, path: str, body: str, status: int
) -> None:
    app = make_app()
    context: Any = SimpleNamespace(aws_request_id="c6af9ac6")
    replies = []
    for is_closed in (False, True):
        reply = make_handler(app, "/", is_closed=is_closed)(make("POST", path, body), context)
        for headers in (reply.get("headers", {}), reply.get("multiValueHeaders", {})):
            headers.pop("server-timing", None)
        replies.append(reply)
    assert replies[0] == replies[1]
    assert replies[0]["statusCode"] == status


START: Any = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
BODY: Any = {"type": "http.response.body", "body": b"one"}


@pytest.mark.parametrize(
    ("messages", "status", "body"),
    [
        ([], 500, "Internal Server Error"),
        ([START], 500, "Internal Server Error"),
        ([START, BODY | {"more_body": True}], 500, "Internal Server Error"),
        ([START, BODY], 200, "one"),
        ([START, BODY | {"more_body": True}, BODY], 200, "oneone"),
    ],
    ids=["nothing", "start", "half", "whole", "whole in parts"],
)
def test_an_app_that_raises_has_the_reply_that_mangum_returns(
    answer: Answer, caplog: pytest.LogCaptureFixture, messages: list[Any], status: int, body: str
) -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        raise OSError("the log is closed")

    context: Any = None
    replies = [
        make_handler(fail, "/", is_closed=is_closed)(http_api("POST", "/similar", "{}"), context)
        for is_closed in (False, True)
    ]
    assert replies[0] == replies[1]
    assert (replies[0]["statusCode"], replies[0]["body"]) == (status, body)
    assert caplog.text.count("OSError: the log is closed") == 2


JSON = {"content-type": "application/json"}
SERVED: list[tuple[Maker, str, object]] = [
    *((make, "headers", JSON | {"x-forwarded-port": "443,80", "host": "["}) for make in (http_api, rest_api)),
    (http_api, "headers", JSON | {"accept": None, "ż": "ó"}),
    *((http_api, "rawQueryString", value) for value in (None, "a=b&a=%ff&żółć")),
    (http_api, "requestContext.http.sourceIp", MISSING),
    (rest_api, "requestContext.identity", None),
    (rest_api, "headers", None),
    (rest_api, "queryStringParameters", {"a": None, "b": "c"}),
    (load_balancer_with_lists, "multiValueQueryStringParameters", None),
]


@pytest.mark.parametrize(("make", "where", "value"), SERVED)
def test_an_odd_field_that_no_route_needs_does_not_matter(
    answer: Answer, make: Maker, where: str, value: object
) -> None:
    event = make("POST", "/similar", QUESTION)
    found, expected = answer(changed(event, where, value)), answer(event)
    assert (found["statusCode"], found["body"], found.keys()) == (200, expected["body"], expected.keys())


REFUSED: list[tuple[Maker, str, object]] = [
    (http_api, "requestContext.http.path", MISSING),
    (http_api, "body", {"text": "goose"}),
    (rest_api, "path", "\ud800"),
    (http_api, "body", "%%%"),
]


@pytest.mark.parametrize(("make", "where", "value"), REFUSED)
def test_an_event_with_a_field_of_the_wrong_type_is_refused(
    answer: Answer, make: Maker, where: str, value: object
) -> None:
    event = make("POST", "/similar", QUESTION) | {"isBase64Encoded": value == "%%%"}
    found = error(answer(changed(event, where, value)))
    assert found.startswith("event: found [")
    assert "expected an HTTP request from API Gateway" in found
    assert len(found) < 500
