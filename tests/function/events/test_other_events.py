"""Events that are not HTTP requests: pings, direct invocations, and events from other sources of AWS."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from function.events import QueueError
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
    {"warmup": True},
    {"keepWarm": True},
    {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "resources": ["arn"], "detail": {}},
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
    "event", [{"warmer": False}, {"warmer": "yes"}, {"source": "my-shop"}, {"source": ["x"]}, "warmup"]
)
def test_an_event_that_only_resembles_a_ping_is_refused(answer: Answer, event: object) -> None:
    assert answer(event)["statusCode"] == 400


DIRECT: list[tuple[Event, tuple[str, str, str]]] = [
    *(
        (event, ("POST", "/similar", json.dumps(event)))
        for event in ({"text": "goose", "num_results": 2}, {"text": "goose", "num_results": 0}, {"text": "żółć 🦆"})
    ),
    ({"path": "/predict", "body": {"text": ["goose"]}}, ("POST", "/predict", '{"text": ["goose"]}')),
    ({"path": "/predict", "method": "post", "body": {"text": "a"}}, ("POST", "/predict", '{"text": "a"}')),
    ({"path": "/predict", "body": '{"text": "goose"}'}, ("POST", "/predict", '{"text": "goose"}')),
    ({"path": "/health"}, ("GET", "/health", "")),
    ({"path": "/similar", "method": "PUT"}, ("PUT", "/similar", "")),
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

OTHERS: list[tuple[str, object]] = [
    ("[]", {}),
    ("NoneType", None),
    ("['type', 'authorizationToken', 'methodArn']", {"type": 1, "authorizationToken": "secret", "methodArn": 1}),
    ("['a', 'b', 'c', 'd', 'e', 'f', ...]", dict.fromkeys("abcdefg", "secret")),
    ("['a\\nb']", {"a\nb": "secret"}),
    ("['httpMethod', 'path', 'requestContext']", {"httpMethod": "GET", "path": "/health", "requestContext": {}}),
    ("['text']", {"text": nested}),
    ("['text', 'requestContext']", {"text": "secret", "requestContext": {}}),
]


@pytest.mark.parametrize(("described", "event"), OTHERS)
def test_any_other_event_is_refused_with_its_fields_and_the_expected_events(
    answer: Answer, caplog: pytest.LogCaptureFixture, described: str, event: object
) -> None:
    reply = answer(event)
    assert reply["statusCode"] == 400
    message = json.loads(reply["body"])["error"]
    assert message.startswith(f"event: found {described} (")
    assert "expected an HTTP request from API Gateway, a function URL" in message
    assert "secret" not in message
    line = only_line(caplog)
    assert (line["message"], line["status"], line["error"]) == ("event refused", 400, message)
    assert (line["request_id"], "secret" in repr(line)) == ("c6af9ac6", False)


SQS = {"messageId": "059f36b4", "eventSource": "aws:sqs", "body": "secret"}


@pytest.mark.parametrize("field", ["methodArn", "routeArn"])
def test_the_event_of_an_authorizer_is_no_request(answer: Answer, field: str) -> None:
    event = http_api("GET", "/health", None)
    assert answer(event)["statusCode"] == 200
    assert answer(event | {field: "arn"})["statusCode"] == 400


# an event of each source that deletes or skips its records when the function returns normally
QUEUES: dict[str, tuple[str, object]] = {
    "SQS": ("['Records']", {"Records": [SQS, SQS]}),
    "Kinesis": ("['Records']", {"Records": [{"eventSource": "aws:kinesis", "kinesis": {"data": "c2VjcmV0"}}]}),
    "DynamoDB": ("['Records']", {"Records": [{"eventSource": "aws:dynamodb", "eventName": "INSERT"}]}),
    "Kafka": ("['eventSource', 'records']", {"eventSource": "aws:kafka", "records": {"topic-0": []}}),
    "own Kafka": ("['eventSource', 'records']", {"eventSource": "SelfManagedKafka", "records": {"topic-0": []}}),
    "own Kafka with a prefix": (
        "['eventSource', 'records']",
        {"eventSource": "aws:SelfManagedKafka", "records": {"topic-0": []}},
    ),
    "ActiveMQ": ("['eventSource', 'messages']", {"eventSource": "aws:amq", "messages": [{"data": "c2VjcmV0"}]}),
    "RabbitMQ": ("['eventSource', 'rmqMessagesByQueue']", {"eventSource": "aws:rmq", "rmqMessagesByQueue": {}}),
    "DocumentDB": ("['eventSource', 'events']", {"eventSource": "aws:docdb", "events": [{"event": {}}]}),
    "S3 Batch": (
        "['invocationSchemaVersion', 'invocationId', 'job', 'tasks']",
        {"invocationSchemaVersion": "2.0", "invocationId": "a", "job": {"id": "f3cc"}, "tasks": [{"taskId": "b"}]},
    ),
    "EventBridge Pipes": ("list", [SQS]),
}


@pytest.mark.parametrize(("described", "event"), QUEUES.values(), ids=QUEUES)
def test_an_event_of_a_queue_fails_the_invocation_so_that_the_queue_keeps_its_messages(
    answer: Answer, described: str, event: object
) -> None:
    with pytest.raises(QueueError) as raised:
        answer(event)
    message = str(raised.value)
    assert message.startswith(f"event: found {described} (")
    assert "expected an HTTP request" in message
    assert "secret" not in message


NO_RECORDS: list[object] = [[], {}, None, ["aws:sqs"], [{"eventSource": ["aws:sqs"]}]]


@pytest.mark.parametrize(
    "event",
    [
        {"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": {}}]},
        {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "aws:sqs"}}]},
        {"Records": [{"eventSource": "aws:ses", "ses": {}}]},
        {"awslogs": {"data": "H4sI"}},
        {"version": "0", "detail-type": "aws:sqs", "source": "my-shop", "detail": {}},
        *({"Records": records} for records in NO_RECORDS),
    ],
)
def test_an_event_of_an_asynchronous_caller_is_refused_without_a_failure_because_lambda_would_send_it_again(
    answer: Answer, event: object
) -> None:
    assert answer(event)["statusCode"] == 400
