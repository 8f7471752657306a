"""Lambda events as requests to the app, through Mangum, or beside its event loop (WITHOUT_LOOP).

HTTP events come from API Gateway (payloads 1.0 and 2.0), function URLs, load balancers and VPC Lattice (structures V1
and V2). Other events are actions of Bedrock agents; pings, which keep the function warm and become GET /health; and
direct invocations: `{"text": …}` is the body of POST /similar, and `{"path": …, "method": …, "body": …}` is that
request. Every other event, and one with a field of the wrong type, gets a 400: after an exception, Lambda would send an
asynchronous event twice more. Events of queues and streams raise QueueError instead, because their messages would be
deleted after a normal return. Errors contain names and types but no values, because an event contains its caller's
secrets.
"""

import json
import logging
import reprlib
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode

from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES
from mangum.handlers import ALB, APIGateway, HTTPGateway
from mangum.handlers.alb import encode_query_string_for_alb
from mangum.types import ASGI, LambdaConfig, LambdaContext, LambdaHandler, QueryParams, Response

from semsearch.app.http import Message, header
from semsearch.engine.errors import ExpectedError
from semsearch.search.executor import finish

Event = dict[str, Any]
Headers = dict[str, str]

# serverless-plugin-warmup and lambda-warmer send these pings, and EventBridge sends an event of its schedule.
PING_FLAGS = ("warmer", "warmup", "keepWarm")
PING_SOURCES = ("serverless-plugin-warmup", "serverless-plugin-lambda-warmup")
SCHEDULE = "Scheduled Event"
# The eventSource of records that are deleted, or skipped, once the function has returned. An exception keeps them: they
# are sent again, and then to a dead-letter queue if there is one.
QUEUES = {"sqs", "kinesis", "dynamodb", "docdb", "kafka", "SelfManagedKafka", "amq", "rmq"}  # most after "aws:"
FUNCTION_URL = ".lambda-url."  # in the domain of every function URL
SESSION = ("sessionAttributes", "promptSessionAttributes")  # what a Bedrock agent gets back as it has sent it
DIRECT_FIELDS = {"path", "method", "body"}
# Routes whose requests never suspend, valid or not, so that they need no event loop. A start, which sends one of them,
# then does not import asyncio, and takes 6 % less processor time.
WITHOUT_LOOP = {("POST", "/similar"), ("POST", "/predict")}
EXPECTED_EVENT = (
    "expected an HTTP request from API Gateway, a function URL, a load balancer or VPC Lattice, an action of a Bedrock "
    'agent, {"text": "some words"}, or {"path": "/predict", "body": {"text": "some words"}}; remove this function from '
    "the event's source, or compare the event with the examples in the folder function/sample_events/"
)


class QueueError(ExpectedError):
    """An event of a queue or a stream, which the function cannot process. The message is that of a refused event."""


def make_handler(app: ASGI, base_path: str, *, is_closed: bool) -> Callable[[Any, LambdaContext], dict[str, Any]]:
    """Return the Lambda handler of an app whose routes are under base_path, "/" for none.

    It answers every event that JSON can express, but raises QueueError for those of queues and streams. Another event
    that is not a request gets a 400. is_closed: callers need a key or a token, for which every request can wait.
    """
    formats: list[type[LambdaHandler]] = [HttpApi, RestApi, LoadBalancer, Lattice, BedrockAgent, OtherEvent]
    config = LambdaConfig(
        api_gateway_base_path=base_path or "/", text_mime_types=DEFAULT_TEXT_MIME_TYPES, exclude_headers=[]
    )

    @cache
    def mangum() -> Mangum:  # not made in a start, because it makes an event loop
        return Mangum(app, lifespan="off", api_gateway_base_path=base_path, custom_handlers=formats)

    def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
        reader: Any = format_of(event)(event, context, config)  # EventReader and one of Mangum's handlers
        if not is_closed and (reader.scope["method"], reader.scope["path"]) in WITHOUT_LOOP:
            reply: dict[str, Any] = reader(_answer(app, reader.scope, reader.body))
            return reply
        return mangum()(event, context)

    return handler


def _answer(app: ASGI, scope: Any, body: bytes) -> Response:
    """Return the app's reply to a request that never suspends, without an event loop.

    If the app raises an exception, it is logged as Mangum does; the reply is a 500 unless it was complete before.
    """
    headers: Any = [(b"content-type", b"text/plain; charset=utf-8")]
    reply: Response = {"status": 500, "headers": headers, "body": b"Internal Server Error"}
    start: Message = {}
    parts: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
            return
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            reply.update({"status": start["status"], "headers": start["headers"], "body": b"".join(parts)})

    try:
        finish(app(scope, receive, send))
    except Exception:
        logging.getLogger("mangum.http").exception("An error occurred running the application.")
    return reply


class EventReader:
    """A Mangum handler for one format of events. A subclass reads the event, and inherits how to format a reply.

    `scope` is the ASGI scope of the request, and `body` its body. A scope can have four fields of our own: `refusal`
    is the message of a 400 to answer with, and `log_as` is the message of the log line. `is_direct` is True if no API
    key is needed: the event came without HTTP, from a caller with permission to invoke the function, or it is refused.
    `cors_by_aws` is True if the source adds the headers of CORS itself.
    """

    scope: Any = None  # hides Mangum's property of this name, which raises for odd headers such as a port of "443,80"
    body = b""  # likewise

    def __init__(self, event: Any, context: LambdaContext, config: LambdaConfig) -> None:
        self.event, self.context, self.config = event, context, config
        try:
            self.scope = self._read()
            body = self.event.get("body") or ""
            is_base64 = self.event.get("isBase64Encoded")
            if is_base64:
                self.body = b64decode(body, validate=True)
            else:
                self.body = body.encode()
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            self.scope = self._make_scope("", "", {})
            # names of fields but no values, which can be secrets
            found = reprlib.repr([*event]) if isinstance(event, dict) else type(event).__name__
            refusal = f"event: found {found} ({type(error).__name__} while it was read), {EXPECTED_EVENT}"
            if is_from_queue(event):
                raise QueueError(refusal) from None
            self.scope |= {"refusal": refusal, "log_as": "event refused", "is_direct": True}

    @classmethod
    def infer(cls, event: object, context: LambdaContext, config: LambdaConfig) -> bool:
        """Return whether an event has this format."""
        return format_of(event) is cls

    def _read(self) -> dict[str, Any]:
        """Return the scope of the event's request. A wrong field raises an error that `__init__` catches."""
        raise NotImplementedError

    def _make_scope(
        self,
        method: str,
        path: str,
        headers: Headers,
        query: bytes = b"",
        source_ip: object = None,
        stage: str = "$default",
    ) -> dict[str, Any]:
        """Return the ASGI scope of a request. Its path is decoded, without the stage and the base path.

        An HTTP API's paths begin with its stage, with a custom domain too
        (https://github.com/CodeGenieApp/serverless-express/issues/465): with the stage `prod`, `/prod` means `/`. The
        base path is removed if it is there and a path follows; the same API has an address without it. Mangum's
        strip_api_gateway_path is not used: with the base path /p it would turn /predict into redict.
        """
        path = path or "/"
        path.encode()  # refuses half of a surrogate pair
        if stage != "$default" and f"{path}/".startswith(f"/{stage}/"):
            path = path.removeprefix(f"/{stage}") or "/"
        base = self.config["api_gateway_base_path"].rstrip("/")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "http_version": "1.1",
            "method": method.upper(),
            "scheme": headers.get("x-forwarded-proto", "https"),
            "path": path.removeprefix(base) if path.startswith(f"{base}/") else path,
            "query_string": query,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (source_ip, 0),
            "aws.event": self.event,
            "aws.context": self.context,
        }


class HttpApi(EventReader, HTTPGateway):
    """An HTTP API with payload 2.0, whose path is decoded already, or a function URL, whose path is not."""

    def _read(self) -> dict[str, Any]:
        context, headers = self.event["requestContext"], _headers(self.event)
        if cookies := self.event.get("cookies"):
            headers["cookie"] = "; ".join(cookies)
        http, query = context["http"], (self.event.get("rawQueryString") or "").encode()
        path = http["path"]
        if FUNCTION_URL in str(context.get("domainName")):
            path = unquote(path)
        stage = context.get("stage") or "$default"
        scope = self._make_scope(http["method"], path, headers, query, http.get("sourceIp"), stage)
        return scope | {"cors_by_aws": True}


class RestApi(EventReader, APIGateway):
    """A REST API, or an HTTP API with payload 1.0, whose event has a version and whose path is decoded already.

    The path of a REST API has no stage; that of an HTTP API has one with both payloads.
    """

    def _read(self) -> dict[str, Any]:
        query = urlencode(_query(self.event), doseq=True).encode()
        source_ip = (self.event["requestContext"].get("identity") or {}).get("sourceIp")
        path, stage, is_http_api = self.event["path"], "$default", "version" in self.event
        if is_http_api:
            stage = self.event["requestContext"].get("stage") or stage
        else:
            path = unquote(path)
        scope = self._make_scope(self.event["httpMethod"], path, _headers(self.event), query, source_ip, stage)
        return scope | {"cors_by_aws": is_http_api}


class LoadBalancer(EventReader, ALB):
    """An Application Load Balancer. Mangum replies with lists of headers if the event has such lists."""

    def _read(self) -> dict[str, Any]:
        headers, query = _headers(self.event), encode_query_string_for_alb(_query(self.event))
        source_ip = headers.get("x-forwarded-for", "")
        return self._make_scope(self.event["httpMethod"], unquote(self.event["path"]), headers, query, source_ip)


class Lattice(EventReader, HTTPGateway):
    """VPC Lattice with the event structure V1 or V2, whose path is not decoded and can have the query string."""

    def _read(self) -> dict[str, Any]:
        event = self.event
        if "raw_path" in event:  # V1; Mangum reads the format of the reply in `version`
            self.event = {
                "version": "2.0",
                "body": event.get("body"),
                "isBase64Encoded": event.get("is_base64_encoded"),
            }
            path, parameters = event["raw_path"], event.get("query_string_parameters")
        else:
            path, parameters = event["path"], event.get("queryStringParameters")
        path, _, query = path.partition("?")
        query = query or urlencode(parameters or {}, doseq=True)
        headers = _headers(event)
        source_ip = headers.get("x-forwarded-for", "")
        return self._make_scope(event["method"], unquote(path), headers, query.encode(), source_ip)


class BedrockAgent(EventReader, HTTPGateway):
    """An action of a Bedrock agent: an operation of an OpenAPI schema, or a function, the POST route of that name.

    It needs no API key: the agent has permission to invoke the function.
    Source: https://docs.aws.amazon.com/bedrock/latest/userguide/agents-lambda.html
    """

    def _read(self) -> dict[str, Any]:
        self._action, self.event = self.event, {"version": "2.0"}
        parameters = _values(self._action.get("parameters"))
        headers: Headers = {}
        query = b""
        body: Event | None = None
        if "function" in self._action:
            method, path, body = "POST", f"/{self._action['function']}", parameters
        else:
            method, path = self._action["httpMethod"], self._action["apiPath"]
            for name in [name for name in parameters if f"{{{name}}}" in path]:
                path = path.replace(f"{{{name}}}", str(parameters.pop(name)))
            query = urlencode(parameters).encode()
            if content := (self._action.get("requestBody") or {}).get("content"):
                body = _values(content["application/json"]["properties"])
        if body is not None:
            self.event["body"] = json.dumps(body)
            headers["content-type"] = "application/json"
        return self._make_scope(method, path, headers, query) | {"is_direct": True}

    def __call__(self, response: Response) -> dict[str, Any]:
        """Return the reply as Bedrock reads it. After an error of the caller, the agent can try again."""
        status, body = response["status"], {"body": response["body"].decode()}
        reply: Event
        if "function" in self._action:
            outcome: Event = {"responseBody": {"TEXT": body}}
            if status >= 500:
                outcome["responseState"] = "FAILURE"
            elif status >= 400:
                outcome["responseState"] = "REPROMPT"
            reply = {"functionResponse": outcome}
        else:
            content_type = header({"headers": response["headers"]}, b"content-type").decode()
            reply = {"httpStatusCode": status, "responseBody": {content_type: body}}
        for name in ("actionGroup", "function", "apiPath", "httpMethod"):
            if name in self._action:
                reply[name] = self._action[name]
        session = {name: self._action[name] for name in SESSION if name in self._action}
        return {"messageVersion": "1.0", "response": reply} | session


class OtherEvent(EventReader, HTTPGateway):
    """A ping, a direct invocation, or an event that is not a request. The reply has the format of an HTTP API."""

    def _read(self) -> dict[str, Any]:
        event, self.event = self.event, {"version": "2.0"}  # Mangum reads the format of the reply here
        is_flagged = any(event.get(flag) is True for flag in PING_FLAGS)
        if is_flagged or event.get("source") in PING_SOURCES or event.get("detail-type") == SCHEDULE:
            return self._make_scope("GET", "/health", {}) | {"log_as": "ping"}
        if "path" in event and event.keys() <= DIRECT_FIELDS:
            path, body = event["path"], event.get("body")
            if not isinstance(body, str | None):
                body = json.dumps(body)
            method = (event.get("method") or ("POST" if body else "GET")).upper()
        elif "text" in event and "requestContext" not in event:
            method, path, body = "POST", "/similar", json.dumps(event)
        else:
            raise ValueError("neither a ping nor a direct invocation")
        self.event["body"] = body
        headers = {"content-type": "application/json"} if body else {}
        return self._make_scope(method, unquote(path), headers) | {"is_direct": True}


def format_of(event: object) -> type[EventReader]:
    """Return the handler for an event."""
    if not isinstance(event, dict) or "methodArn" in event or "routeArn" in event:
        return OtherEvent  # an authorizer's event contains the whole request and one of these fields
    if "raw_path" in event:
        return Lattice
    context = event.get("requestContext")
    if "actionGroup" in event and context is None and "headers" not in event:
        return BedrockAgent  # no field of an HTTP request, because an agent needs no API key
    if not isinstance(context, dict):
        return OtherEvent
    if "elb" in context:
        return LoadBalancer
    if event.get("version") == "2.0" and "http" in context:
        return HttpApi
    if event.get("version") == "2.0" and "serviceArn" in context:
        return Lattice
    if "resource" in event:
        return RestApi
    return OtherEvent


def is_from_queue(event: object) -> bool:
    """Return whether the source of an event deletes or skips its messages once the function has returned.

    The sources are Lambda's pollers of queues and streams, EventBridge Pipes, which send a list of the same records,
    and S3 Batch Operations.
    """
    records, source = event, None
    if isinstance(event, dict):
        if "invocationSchemaVersion" in event and "tasks" in event:
            return True
        records, source = event.get("Records"), event.get("eventSource")
    if isinstance(records, list) and records and isinstance(records[0], dict):
        source = records[0].get("eventSource")
    return isinstance(source, str) and source.removeprefix("aws:") in QUEUES


def _query(event: Event) -> QueryParams:
    """Return the values of each query parameter; the lists contain the plain parameters too."""
    lists = event.get("multiValueQueryStringParameters")
    single = (event.get("queryStringParameters") or {}).items()
    return {
        name: values or [] for name, values in (lists or {name: value and [value] for name, value in single}).items()
    }


def _headers(event: Event) -> Headers:
    """Return the headers by name in lower case. Several values of one name are joined by commas, as in HTTP."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items() if value is not None}
    headers |= {name.lower(): values for name, values in (event.get("multiValueHeaders") or {}).items()}
    return {name: ", ".join(value) if isinstance(value, list) else value for name, value in headers.items()}


def _values(properties: list[dict[str, Any]] | None) -> Event:
    """Return the values that an agent sends, by name. Each is text, which is JSON unless its type is string."""
    values = {}
    for one in properties or []:
        value = one["value"]
        if one["type"] != "string":
            with suppress(ValueError):  # the route refuses what is not of its type
                value = json.loads(value)
        values[one["name"]] = value
    return values
