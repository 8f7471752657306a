"""Events that are not HTTP requests: pings that keep the function warm, direct invocations, and events sent by mistake.

Imported when the first of them arrives. Each becomes a checked event, so that all are answered and logged the same way:

- a ping is answered like GET /health, and logged as a ping;
- `{"text": …}`, from `sam local invoke` or another function, is the body of POST /similar;
- `{"path": …, "method": …, "body": …}` is that request; without a method it is POST if there is a body, else GET;
- any other event gets a 400 that says what the event seems to be and what is expected. An exception would ring the
  alarm, and Lambda would send an asynchronous event twice more.
"""

import json

from function.events.fields import COMPARE, JSON_NAMES, Event, EventError, encode, read_text, shown, wrong
from function.events.http import make_event

# Pings: serverless-plugin-warmup and lambda-warmer send these, and EventBridge sends its schedule's own event.
PING_FLAGS = ("warmer", "warmup", "keepWarm")
PING_SOURCES = ("serverless-plugin-warmup", "serverless-plugin-lambda-warmup")
SCHEDULE = "Scheduled Event"
THUNDRA_PING = "#warmup"  # the start of a string; options may follow

DIRECT_FIELDS = {"path", "method", "body"}
HTTP_FIELDS = ("requestContext", "httpMethod", "rawPath", "raw_path")
EXPECTED = (
    'expected an HTTP request from API Gateway, a function URL or a load balancer, or {"text": "some words"}, '
    'or {"path": "/predict", "body": {"text": "some words"}}'
)

# Fields that only one kind of event has, and where Records come from.
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
}
CONTEXT_KINDS = {
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
FIELDS_SHOWN = 4


def as_http_event(event: object) -> Event:
    """Return the checked event that a ping or a direct invocation stands for.

    Raises EventError if the event is neither, or if a field of a direct invocation has the wrong type.
    """
    if is_ping(event):
        return make_event("GET", "/health", log_as="ping")
    if isinstance(event, dict) and not any(name in event for name in HTTP_FIELDS):
        if "path" in event:
            return _direct_request(event)
        if "text" in event:
            return make_event("POST", "/similar", _json(event, "event"))
    advice = f"remove this function from the event's source, or {COMPARE}"
    raise EventError(f"event: found {describe(event)}, {EXPECTED}; {advice}")


def refused_event(event: object, message: str) -> Event:
    """Return the checked event that will be answered with a 400 and this message, in the form that the source reads.

    Its method and path are those of the event, for the log, or empty if the event has none.
    """
    fields = event if isinstance(event, dict) else {}
    context = _object_or_empty(fields, "requestContext")
    http = _object_or_empty(context, "http")
    method = _text_or_empty(http.get("method") or fields.get("httpMethod"))
    path = _text_or_empty(http.get("path") or fields.get("path"))
    refused = make_event(method, path, refusal=message, log_as="event refused")
    if "elb" in context and fields.get("multiValueHeaders") is not None:
        return refused | {"requestContext": {"elb": {}}, "httpMethod": method, "path": path, "multiValueHeaders": {}}
    return refused


def is_ping(event: object) -> bool:
    """Return whether an event only keeps the function warm."""
    if isinstance(event, str):
        return event.startswith(THUNDRA_PING)
    if not isinstance(event, dict):
        return False
    return (
        any(event.get(flag) is True for flag in PING_FLAGS)
        or event.get("source") in PING_SOURCES
        or event.get("detail-type") == SCHEDULE
    )


def describe(event: object) -> str:
    """Return what kind of event this seems to be, by the names of its fields: values may be somebody's secrets."""
    if not isinstance(event, dict):
        return JSON_NAMES.get(type(event), "null")
    if not event:
        return "an empty object"
    kinds = [kind for field, kind in KINDS.items() if field in event]
    context = event.get("requestContext")
    if isinstance(context, dict):
        kinds += [kind for field, kind in CONTEXT_KINDS.items() if field in context]
    if "Records" in event or "records" in event:
        kinds.append(_describe_records(event))
    if kinds:
        return kinds[0]
    if any(name in event for name in HTTP_FIELDS):
        if not isinstance(context, dict):
            raise wrong("event.requestContext", context, "an object")
        return 'an HTTP request without resource, requestContext.elb, or version "2.0" with requestContext.http'
    names = [shown(name) for name in event]
    more = ", …" if len(names) > FIELDS_SHOWN else ""
    return f"an object with {', '.join(names[:FIELDS_SHOWN])}{more}"


def _describe_records(event: Event) -> str:
    records = event.get("Records")
    first = records[0] if isinstance(records, list) and records and isinstance(records[0], dict) else event
    if "cf" in first:
        return "a CloudFront request (Lambda@Edge)"
    source = first.get("eventSource") or first.get("EventSource")  # SNS writes it with a capital
    return RECORD_KINDS.get(source, "a list of records") if isinstance(source, str) else "a list of records"


def _direct_request(event: Event) -> Event:
    if unknown := [name for name in event if name not in DIRECT_FIELDS]:
        raise EventError(
            f"event: found {shown(unknown[0])} beside path, expected only path, method and body; remove it"
        )
    body = event.get("body")
    if body is None:
        content = b""
    else:
        content = encode(body, "event.body") if isinstance(body, str) else _json(body, "event.body")
    method = ("POST" if content else "GET") if event.get("method") is None else read_text(event, "method").upper()
    return make_event(method, read_text(event, "path"), content)


def _json(value: object, where: str) -> bytes:
    """Return a value as JSON, in ASCII. Raises EventError if it is nested too deep."""
    try:
        return json.dumps(value).encode()
    except RecursionError as error:
        raise EventError(f"{where}: found brackets nested too deeply, expected {EXPECTED}") from error


def _object_or_empty(fields: Event, name: str) -> Event:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _text_or_empty(text: object) -> str:
    return shown(text) if isinstance(text, str) else ""
