"""Events that are not HTTP requests: pings, direct invocations, and what other sources of AWS send."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from function.events import make_handler
from tests.function.event_makers import http_api

Answer = Callable[[object], dict[str, Any]]

PINGS: dict[str, object] = {
    "serverless-plugin-warmup": {"source": "serverless-plugin-warmup"},
    "lambda-warmer": {"warmer": True, "concurrency": 3},
    "lambda-warmer, its own call": {"warmer": True, "concurrency": 3, "__WARMER_INVOCATION__": 2},
    "warmup": {"warmup": True},
    "keepWarm": {"keepWarm": True},
    "thundra": "#warmup",
    "thundra with options": "#warmup wait=200",
    "schedule": {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": "2026-10-08T16:53:06Z",
        "region": "eu-central-1",
        "resources": ["arn:aws:events:eu-central-1:123456789012:rule/warm"],
        "detail": {},
    },
    "scheduler": {"version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": "{}"},
}


@pytest.fixture(autouse=True)
def listening(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    """Keep what is logged from here on."""
    caplog.set_level(logging.INFO, logger="tests")
    caplog.clear()


def only_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = [record for record in caplog.records if record.name == "tests"]
    assert (record.levelname, record.exc_info) == ("INFO", None)
    return vars(record)


@pytest.mark.parametrize("kind", PINGS)
def test_a_ping_is_answered_quietly_and_logged_as_one(
    answer: Answer, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    reply = answer(PINGS[kind])
    assert (reply["statusCode"], reply["body"]) == (200, '{"status":"ok"}')
    line = only_line(caplog)
    assert (line["message"], line["status"], line["request_id"]) == ("ping", 200, "c6af9ac6")


@pytest.mark.parametrize(
    "event", [{"warmer": False}, {"warmer": "yes"}, {"source": "my-shop"}, {"source": ["x"]}, "warmup", ["#warmup"]]
)
def test_what_only_resembles_a_ping_is_none(answer: Answer, event: object) -> None:
    assert answer(event)["statusCode"] == 400


def test_the_first_event_after_a_start_may_be_a_ping_and_the_start_is_reported(
    make_app: Callable[..., Any], answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    make_handler(make_app(), base_path="/")({"warmer": True}, None)  # type: ignore[arg-type]
    assert [record.message for record in caplog.records if record.name == "tests"] == ["cold start", "ping"]


# a direct invocation and the HTTP request that it stands for: method, path, body
DIRECT: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "text": ({"text": "goose"}, ("POST", "/similar", '{"text": "goose"}')),
    "num_results": (
        {"text": "goose", "num_results": 2},
        ("POST", "/similar", '{"text": "goose", "num_results": 2}'),
    ),
    "a field out of its range": (
        {"text": "goose", "num_results": 0},
        ("POST", "/similar", '{"text": "goose", "num_results": 0}'),
    ),
    "an unknown field": ({"text": "goose", "top_k": 5}, ("POST", "/similar", '{"text": "goose", "top_k": 5}')),
    "half a surrogate pair": ({"text": "\ud800"}, ("POST", "/similar", '{"text": "\\ud800"}')),
    "other scripts": ({"text": "żółć 🦆"}, ("POST", "/similar", '{"text": "żółć 🦆"}')),
    "path and object": (
        {"path": "/predict", "body": {"text": ["goose", "ferry"]}},
        ("POST", "/predict", '{"text": ["goose", "ferry"]}'),
    ),
    "path and string": (
        {"path": "/predict", "body": '{"text": "goose"}'},
        ("POST", "/predict", '{"text": "goose"}'),
    ),
    "path and list": ({"path": "/predict", "body": ["goose"]}, ("POST", "/predict", '["goose"]')),
    "path and method": ({"path": "/predict", "method": "post", "body": {}}, ("POST", "/predict", "{}")),
    "path alone": ({"path": "/health"}, ("GET", "/health", "")),
    "path and null": ({"path": "/info", "method": None, "body": None}, ("GET", "/info", "")),
    "another method": ({"path": "/similar", "method": "PUT"}, ("PUT", "/similar", "")),
    "an unknown path": ({"path": "/simlar", "body": {"text": "goose"}}, ("POST", "/simlar", '{"text": "goose"}')),
    "not JSON": ({"path": "/similar", "body": "goose"}, ("POST", "/similar", "goose")),
}


@pytest.mark.parametrize("kind", DIRECT)
def test_a_direct_invocation_is_served_as_the_request_it_stands_for(
    answer: Answer, client: httpx.Client, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    event, (method, path, body) = DIRECT[kind]
    reply = answer(event)
    line = only_line(caplog)
    expected = client.request(method, path, content=body, headers={"content-type": "application/json"})
    assert (reply["statusCode"], reply["body"]) == (expected.status_code, expected.text)
    assert reply["headers"]["content-type"] == "application/json"
    assert reply["isBase64Encoded"] is False
    assert (line["message"], line["method"], line["path"]) == ("request", method, path)


nested: list[Any] = []
for _ in range(100_000):
    nested = [nested]

REFUSED_DIRECT: dict[str, tuple[dict[str, Any], str]] = {
    "path as a number": ({"path": 5}, "event.path: found a number, expected a string; "),
    "method as a list": ({"path": "/health", "method": []}, "event.method: found a list, expected a string; "),
    "half a surrogate pair": ({"path": "/similar", "body": "\ud800"}, "event.body: found half of a surrogate pair "),
    "an unknown field": (
        {"path": "/similar", "text": "goose"},
        "event: found text beside path, expected only path, method and body; remove it",
    ),
    "too deep": ({"text": nested}, "event: found brackets nested too deeply, expected "),
    "body too deep": ({"path": "/similar", "body": nested}, "event.body: found brackets nested too deeply"),
}


@pytest.mark.parametrize("kind", REFUSED_DIRECT)
def test_a_direct_invocation_with_a_wrong_field_is_refused(answer: Answer, kind: str) -> None:
    event, message = REFUSED_DIRECT[kind]
    reply = answer(event)
    assert reply["statusCode"] == 400
    assert json.loads(reply["body"])["error"].startswith(message)


OTHERS: dict[str, tuple[object, str]] = {
    "empty object": ({}, "an empty object"),
    "null": (None, "null"),
    "list": ([{"text": "goose"}], "a list"),
    "empty list": ([], "a list"),
    "string": ("goose", "a string"),
    "number": (5, "a number"),
    "fraction": (0.5, "a number"),
    "boolean": (True, "a boolean"),
    "unknown fields": ({"key1": "a", "key2": 2}, "an object with key1, key2"),
    "many unknown fields": ({f"key{i}": i for i in range(9)}, "an object with key0, key1, key2, key3, …"),
    "EventBridge": (
        {"version": "0", "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2", "detail": {}},
        "an EventBridge event",
    ),
    "SQS": ({"Records": [{"messageId": "a", "eventSource": "aws:sqs", "body": "goose"}]}, "messages from SQS"),
    "SNS": ({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "goose"}}]}, "messages from SNS"),
    "S3": ({"Records": [{"eventSource": "aws:s3", "s3": {"object": {"key": "a"}}}]}, "a notification from S3"),
    "DynamoDB": ({"Records": [{"eventSource": "aws:dynamodb", "dynamodb": {}}]}, "records from a DynamoDB stream"),
    "Kinesis": ({"Records": [{"eventSource": "aws:kinesis", "kinesis": {}}]}, "records from a Kinesis stream"),
    "Kafka": ({"eventSource": "aws:kafka", "records": {"topic-0": []}}, "records from Kafka"),
    "CloudFront": (
        {"Records": [{"cf": {"request": {"method": "GET", "uri": "/health", "headers": {}}}}]},
        "a CloudFront request (Lambda@Edge)",
    ),
    "Records empty": ({"Records": []}, "a list of records"),
    "Records null": ({"Records": None}, "a list of records"),
    "Records odd": ({"Records": [{"eventSource": ["aws:sqs"]}]}, "a list of records"),
    "CloudWatch Logs": ({"awslogs": {"data": "H4sI"}}, "log lines from CloudWatch Logs"),
    "VPC Lattice 1.0": (
        {"raw_path": "/similar", "method": "POST", "headers": {}, "body": "{}", "is_base64_encoded": False},
        "a VPC Lattice request (format 1.0)",
    ),
    "VPC Lattice 2.0": (
        {
            "version": "2.0",
            "path": "/similar",
            "method": "POST",
            "headers": {"accept": ["*/*"]},
            "requestContext": {"serviceNetworkArn": "arn", "serviceArn": "arn", "targetGroupArn": "arn"},
        },
        "a VPC Lattice request (format 2.0)",
    ),
    "WebSocket": (
        {"requestContext": {"routeKey": "$connect", "eventType": "CONNECT", "connectionId": "a="}, "headers": {}},
        "a message of an API Gateway WebSocket",
    ),
    "Cognito": (
        {"version": "1", "triggerSource": "PreSignUp_SignUp", "userPoolId": "a", "request": {}, "response": {}},
        "a Cognito trigger",
    ),
    "authorizer with a token": (
        {"type": "TOKEN", "authorizationToken": "secret", "methodArn": "arn:aws:execute-api"},
        "an event for a REST API's authorizer",
    ),
    "authorizer of an HTTP API": (
        http_api("GET", "/health", None) | {"type": "REQUEST", "routeArn": "arn:aws:execute-api"},
        "an event for an HTTP API's authorizer",
    ),
    "destination": (
        {"version": "1.0", "requestContext": {"functionArn": "arn"}, "requestPayload": {}, "responsePayload": None},
        "the record of another function's invocation",
    ),
    "HTTP without requestContext": (
        {"httpMethod": "GET", "path": "/health", "requestContext": {"stage": "prod"}},
        'an HTTP request without resource, requestContext.elb, or version "2.0" with requestContext.http',
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_event_is_refused_with_what_it_seems_to_be_and_what_is_expected(
    answer: Answer, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    event, described = OTHERS[kind]
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


def test_the_direct_invocations_that_a_refusal_shows_are_served(answer: Answer) -> None:
    for shown in ({"text": "some words"}, {"path": "/predict", "body": {"text": "some words"}}):
        assert json.dumps(shown) in json.loads(answer({})["body"])["error"]
        assert answer(shown)["statusCode"] == 200
