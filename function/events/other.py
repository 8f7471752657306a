"""Events that are not HTTP requests: pings that keep the function warm, direct invocations, and events sent by mistake.

This module is imported when the first of them arrives, or the first HTTP event that is refused. All are answered and
logged like requests:

- a ping is GET /health, and logged as a ping;
- `{"text": …}`, from `sam local invoke` or another function, is the body of POST /similar;
- `{"path": …, "method": …, "body": …}` is that request; the default method is POST with a body and GET without;
- any other event gets a 400, whose message has the likely kind of the event and what is expected. An exception would
  trigger the alarm, and Lambda would send an asynchronous event twice more.
"""

import json

from function.events.fields import COMPARE, JSON_NAMES, Event, EventError, read, shown, wrong

# serverless-plugin-warmup and lambda-warmer send these pings, and EventBridge sends an event of its schedule.
PING_FLAGS = ("warmer", "warmup", "keepWarm")
PING_SOURCES = ("serverless-plugin-warmup", "serverless-plugin-lambda-warmup")
SCHEDULE = "Scheduled Event"
THUNDRA_PING = "#warmup"  # the first characters of a string; options can follow

DIRECT_FIELDS = {"path", "method", "body"}
HTTP_FIELDS = ("requestContext", "httpMethod", "rawPath", "raw_path")
EXPECTED = (
    'expected an HTTP request from API Gateway, a function URL or a load balancer, or {"text": "some words"}, '
    'or {"path": "/predict", "body": {"text": "some words"}}'
)

# Fields of an event, or of its requestContext, that only one kind of event has.
KINDS = {
    "methodArn": "an event for a REST API's authorizer",
    "routeArn": "an event for an HTTP API's authorizer",
    "authorizationToken": "an event for an authorizer",
    "triggerSource": "a Cognito trigger",
    "raw_path": "a VPC Lattice request (format 1.0)",
    "detail-type": "an EventBridge event",
    "awslogs": "log lines from CloudWatch Logs",
    "deliveryStreamArn": "records from Firehose",
    "ResponseURL": "an event of a CloudFormation custom resource",
    "requestPayload": "the record of another function's invocation",
    "connectionId": "a message of an API Gateway WebSocket",
    "serviceNetworkArn": "a VPC Lattice request (format 2.0)",
}
RECORD_KINDS = {
    "aws:sqs": "messages from SQS",
    "aws:sns": "messages from SNS",
    "aws:s3": "a notification from S3",
    "aws:dynamodb": "records from a DynamoDB stream",
    "aws:kinesis": "records from a Kinesis stream",
    "aws:kafka": "records from Kafka",
    "aws:ses": "mail from SES",
}
FIELDS_SHOWN = 4  # maximum names of an unknown event's fields in an error


def as_request(event: object) -> tuple[str, str, str, str]:
    """Return method, path and body of the request that a ping or a direct invocation means, and its log message.

    Raises EventError if the event is neither, or if a field of a direct invocation has the wrong type.
    """
    if is_ping(event):
        return "GET", "/health", "", "ping"
    if isinstance(event, dict) and not any(name in event for name in HTTP_FIELDS):
        if "path" in event:
            return *_direct_request(event), "request"
        if "text" in event:
            return "POST", "/similar", _json(event, "event"), "request"
    advice = f"remove this function from the event's source, or {COMPARE}"
    raise EventError(f"event: found {describe(event)}, {EXPECTED}; {advice}")


def method_and_path(event: object) -> tuple[str, str]:
    """Return the method and the path of a refused event for its log line; empty strings if the event has none."""
    fields = _object_or_empty(event)
    http = _object_or_empty(_object_or_empty(fields.get("requestContext")).get("http"))
    method, path = http.get("method") or fields.get("httpMethod"), http.get("path") or fields.get("path")
    return shown(method) if isinstance(method, str) else "", shown(path) if isinstance(path, str) else ""


def is_ping(event: object) -> bool:
    """Return whether an event only keeps the function warm."""
    if isinstance(event, str):
        return event.startswith(THUNDRA_PING)
    fields = _object_or_empty(event)
    is_flagged = any(fields.get(flag) is True for flag in PING_FLAGS)
    return is_flagged or fields.get("source") in PING_SOURCES or fields.get("detail-type") == SCHEDULE


def describe(event: object) -> str:
    """Return the kind of an event, judged by the names of its fields. Values can be secrets and are not used.

    Raises EventError if the event is an HTTP request without a requestContext.
    """
    if not isinstance(event, dict):
        return JSON_NAMES.get(type(event), "null")
    if not event:
        return "an empty object"
    context = event.get("requestContext")
    kinds = [kind for field, kind in KINDS.items() if field in event or field in _object_or_empty(context)]
    if kinds:
        return kinds[0]
    if "Records" in event or "records" in event:
        return _describe_records(event)
    if any(name in event for name in HTTP_FIELDS):
        if not isinstance(context, dict):
            raise wrong("event.requestContext", context, "an object")
        return 'an HTTP request without resource, requestContext.elb, or version "2.0" with requestContext.http'
    more = ", …" if len(event) > FIELDS_SHOWN else ""
    return f"an object with {', '.join([shown(name) for name in event][:FIELDS_SHOWN])}{more}"


def _describe_records(event: Event) -> str:
    records = event.get("Records")
    first = _object_or_empty(records[0]) if isinstance(records, list) and records else event
    if "cf" in first:
        return "a CloudFront request (Lambda@Edge)"
    source = first.get("eventSource") or first.get("EventSource")  # SNS writes it with a capital
    return RECORD_KINDS.get(str(source), "a list of records")


def _direct_request(event: Event) -> tuple[str, str, str]:
    if unknown := [shown(name) for name in event if name not in DIRECT_FIELDS]:
        raise EventError(f"event: found {unknown[0]} beside path, expected only path, method and body; remove it")
    body = event.get("body")
    content = body if isinstance(body, str) else "" if body is None else _json(body, "event.body")
    method = read(event, "method", str, default="POST" if content else "GET").upper()
    return method, read(event, "path", str), content


def _json(value: object, where: str) -> str:
    """Return a value as JSON. Raises EventError if it is nested too deeply."""
    try:
        return json.dumps(value)
    except RecursionError as error:
        raise EventError(f"{where}: found brackets nested too deeply, expected {EXPECTED}") from error


def _object_or_empty(found: object) -> Event:
    return found if isinstance(found, dict) else {}
