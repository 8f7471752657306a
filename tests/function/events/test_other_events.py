"""Events that are not HTTP requests: pings, direct invocations, and events from other sources of AWS."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from function.events import make_handler
from tests.function.events.event_makers import Event, http_api

Answer = Callable[[object], dict[str, Any]]


@pytest.fixture(autouse=True)
def listening(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    """Keep the log lines from here on."""
    caplog.set_level(logging.INFO, logger="tests")
    caplog.clear()


def only_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = [record for record in caplog.records if record.name == "tests"]
    assert (record.levelname, record.exc_info) == ("INFO", None)
    return vars(record)


PINGS = [
    {"source": "serverless-plugin-warmup"},
    {"warmer": True, "concurrency": 3},
    {"warmer": True, "concurrency": 3, "__WARMER_INVOCATION__": 2},
    {"warmup": True},
    {"keepWarm": True},
    "#warmup",
    "#warmup wait=200",
    {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "resources": ["arn"], "detail": {}},
    {"version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": "{}"},
]


@pytest.mark.parametrize("event", PINGS)
def test_a_ping_is_answered_and_logged_as_a_ping(
    answer: Answer, caplog: pytest.LogCaptureFixture, event: object
) -> None:
    reply = answer(event)
    assert (reply["statusCode"], reply["body"]) == (200, '{"status":"ok"}')
    line = only_line(caplog)
    assert (line["message"], line["status"], line["request_id"]) == ("ping", 200, "c6af9ac6")


@pytest.mark.parametrize(
    "event", [{"warmer": False}, {"warmer": "yes"}, {"source": "my-shop"}, {"source": ["x"]}, "warmup", ["#warmup"]]
)
def test_an_event_that_only_resembles_a_ping_is_refused(answer: Answer, event: object) -> None:
    assert answer(event)["statusCode"] == 400


def test_a_ping_as_the_first_event_reports_the_cold_start(
    make_app: Callable[..., Any], answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    context: Any = None
    make_handler(make_app(), base_path="/")({"warmer": True}, context)
    assert [record.message for record in caplog.records if record.name == "tests"] == ["cold start", "ping"]


DIRECT: list[tuple[Event, tuple[str, str, str]]] = [
    *(
        (event, ("POST", "/similar", json.dumps(event)))
        for event in (
            {"text": "goose"},
            {"text": "goose", "num_results": 2},
            {"text": "goose", "num_results": 0},
            {"text": "goose", "top_k": 5},
            {"text": "\ud800"},
            {"text": "żółć 🦆"},
        )
    ),
    ({"path": "/predict", "body": {"text": ["goose"]}}, ("POST", "/predict", '{"text": ["goose"]}')),
    ({"path": "/predict", "body": '{"text": "goose"}'}, ("POST", "/predict", '{"text": "goose"}')),
    ({"path": "/predict", "body": ["goose"]}, ("POST", "/predict", '["goose"]')),
    ({"path": "/predict", "method": "post", "body": {}}, ("POST", "/predict", "{}")),
    ({"path": "/health"}, ("GET", "/health", "")),
    ({"path": "/info", "method": None, "body": None}, ("GET", "/info", "")),
    ({"path": "/similar", "method": "PUT"}, ("PUT", "/similar", "")),
    ({"path": "/simlar", "body": {"text": "goose"}}, ("POST", "/simlar", '{"text": "goose"}')),
    ({"path": "/similar", "body": "goose"}, ("POST", "/similar", "goose")),
]


@pytest.mark.parametrize(("event", "request_"), DIRECT)
def test_a_direct_invocation_is_answered_like_its_http_request(
    answer: Answer, client: httpx.Client, caplog: pytest.LogCaptureFixture, event: Event, request_: tuple[str, str, str]
) -> None:
    method, path, body = request_
    reply = answer(event)
    line = only_line(caplog)
    expected = client.request(method, path, content=body, headers={"content-type": "application/json"})
    assert (reply["statusCode"], reply["body"]) == (expected.status_code, expected.text)
    assert (reply["headers"]["content-type"], reply["isBase64Encoded"]) == ("application/json", False)
    assert (line["message"], line["method"], line["path"]) == ("request", method, path)


nested: list[Any] = []
for _ in range(100_000):
    nested = [nested]

REFUSED_DIRECT: list[tuple[str, Event]] = [
    ("event.path: found a number, expected a string; ", {"path": 5}),
    ("event.method: found a list, expected a string; ", {"path": "/health", "method": []}),
    ("event.body: found half of a surrogate pair ", {"path": "/similar", "body": "\ud800"}),
    ("event: found text beside path, expected only path, method and body; remove it", {"path": "/", "text": "goose"}),
    ("event: found brackets nested too deeply, expected ", {"text": nested}),
    ("event.body: found brackets nested too deeply", {"path": "/similar", "body": nested}),
]


@pytest.mark.parametrize(("message", "event"), REFUSED_DIRECT, ids=[message for message, _ in REFUSED_DIRECT])
def test_a_direct_invocation_with_a_wrong_field_is_refused(answer: Answer, message: str, event: Event) -> None:
    reply = answer(event)
    assert reply["statusCode"] == 400
    assert json.loads(reply["body"])["error"].startswith(message)


LATTICE_2 = {"version": "2.0", "path": "/similar", "method": "POST", "requestContext": {"serviceNetworkArn": "arn"}}
OTHERS: list[tuple[str, object]] = [
    ("an empty object", {}),
    ("null", None),
    ("a list", [{"text": "goose"}]),
    ("a list", []),
    ("a string", "goose"),
    ("a number", 5),
    ("a number", 0.5),
    ("a boolean", True),
    ("an object with key1, key2", {"key1": "a", "key2": 2}),
    ("an object with key0, key1, key2, key3, …", {f"key{i}": i for i in range(9)}),
    ("an EventBridge event", {"version": "0", "detail-type": "EC2 Instance Launch", "source": "aws.ec2", "detail": {}}),
    ("messages from SQS", {"Records": [{"messageId": "a", "eventSource": "aws:sqs", "body": "goose"}]}),
    ("messages from SNS", {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "goose"}}]}),
    ("a notification from S3", {"Records": [{"eventSource": "aws:s3", "s3": {"object": {"key": "a"}}}]}),
    ("records from a DynamoDB stream", {"Records": [{"eventSource": "aws:dynamodb", "dynamodb": {}}]}),
    ("records from a Kinesis stream", {"Records": [{"eventSource": "aws:kinesis", "kinesis": {}}]}),
    ("records from Kafka", {"eventSource": "aws:kafka", "records": {"topic-0": []}}),
    ("a CloudFront request (Lambda@Edge)", {"Records": [{"cf": {"request": {"method": "GET", "uri": "/health"}}}]}),
    *(("a list of records", {"Records": records}) for records in ([], None, [5], [{"eventSource": ["aws:sqs"]}])),
    ("log lines from CloudWatch Logs", {"awslogs": {"data": "H4sI"}}),
    ("a VPC Lattice request (format 1.0)", {"raw_path": "/similar", "method": "POST", "headers": {}, "body": "{}"}),
    ("a VPC Lattice request (format 2.0)", LATTICE_2),
    ("a message of an API Gateway WebSocket", {"requestContext": {"routeKey": "$connect", "connectionId": "a="}}),
    ("a Cognito trigger", {"version": "1", "triggerSource": "PreSignUp_SignUp", "userPoolId": "a", "request": {}}),
    ("an event for a REST API's authorizer", {"type": "TOKEN", "authorizationToken": "secret", "methodArn": "arn"}),
    ("an event for an HTTP API's authorizer", http_api("GET", "/health", None) | {"routeArn": "arn"}),
    ("the record of another function's invocation", {"requestContext": {"functionArn": "arn"}, "requestPayload": {}}),
    (
        'an HTTP request without resource, requestContext.elb, or version "2.0" with requestContext.http',
        {"httpMethod": "GET", "path": "/health", "requestContext": {"stage": "prod"}},
    ),
]


@pytest.mark.parametrize(("described", "event"), OTHERS)
def test_any_other_event_is_refused_with_its_kind_and_the_expected_events(
    answer: Answer, caplog: pytest.LogCaptureFixture, described: str, event: object
) -> None:
    reply = answer(event)
    message = (
        f"event: found {described}, expected an HTTP request from API Gateway, a function URL or a load balancer, or "
        '{"text": "some words"}, or {"path": "/predict", "body": {"text": "some words"}}; '
        "remove this function from the event's source, or compare the event with the examples in the folder "
        "deploy/events/"
    )
    assert (reply["statusCode"], json.loads(reply["body"])) == (400, {"error": message, "error_type": "bad_request"})
    line = only_line(caplog)
    assert (line["message"], line["status"], line["error"]) == ("event refused", 400, message)


@pytest.mark.parametrize("event", [{"text": "some words"}, {"path": "/predict", "body": {"text": "some words"}}])
def test_the_direct_invocations_that_a_refusal_shows_are_served(answer: Answer, event: Event) -> None:
    assert json.dumps(event) in json.loads(answer({})["body"])["error"]
    assert answer(event)["statusCode"] == 200
