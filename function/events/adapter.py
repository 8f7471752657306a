"""Lambda events as requests to the app: Mangum handlers that check every field they read.

Mangum's own handlers trust that an event is as AWS documents it, and raise any exception if it is not. The handlers
here check the event while they build the ASGI scope from it. Mangum runs the app and formats the reply for each source.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlencode

from mangum import Mangum
from mangum.handlers import ALB, APIGateway, HTTPGateway
from mangum.handlers.alb import encode_query_string_for_alb
from mangum.types import ASGI, LambdaConfig, LambdaContext, LambdaHandler, QueryParams

from function.errors import RIGHT_BODY
from function.events.fields import Event, EventError, encode, read, read_texts, wrong

Handler = Callable[[Any, LambdaContext], dict[str, Any]]
Headers = dict[bytes, bytes]
Scope = dict[str, Any]

CONTEXT = "event.requestContext"
HTTP = f"{CONTEXT}.http"


def make_handler(app: ASGI, base_path: str) -> Handler:
    """Return the Lambda handler of an app whose routes are under base_path, "/" for none.

    It answers every event that JSON can express. An event that is not a request gets a 400.
    """
    formats: list[type[LambdaHandler]] = [HttpApi, RestApi, LoadBalancer, OtherEvent]
    return Mangum(app, lifespan="off", api_gateway_base_path=base_path, custom_handlers=formats)


class CheckedEvent:
    """A Mangum handler for one format of events. A subclass reads the event, and inherits how to format a reply.

    `scope` is the ASGI scope of the request, and `body` its body. A scope can have three fields of our own: `refusal`
    is the message of a 400 to answer with, and `log_as` is the message of the log line. `is_direct` is True if no API
    key is needed: the event came without HTTP, from a caller with permission to invoke the function, or it is refused.
    """

    scope: Any = None  # hides Mangum's property of this name, which would read the event unchecked
    body = b""  # likewise

    def __init__(self, event: Any, context: LambdaContext, config: LambdaConfig) -> None:
        self.event, self.context, self.config = event, context, config
        try:
            self.scope = self._read()
            self.body = _body(self.event)
        except EventError as error:
            from function.events.other import method_and_path  # not needed to start

            self.scope = self._make_scope(*method_and_path(event), {})
            self.scope |= {"refusal": str(error), "log_as": "event refused", "is_direct": True}

    @classmethod
    def infer(cls, event: object, context: LambdaContext, config: LambdaConfig) -> bool:
        """Return whether an event has this format."""
        return format_of(event) is cls

    def _read(self) -> Scope:
        """Return the scope of the event's request. Raises EventError if a field is missing or has another type."""
        raise NotImplementedError

    def _make_scope(
        self,
        method: str,
        path: str,
        headers: Headers,
        query: bytes = b"",
        source_ip: object = None,
        stage: str = "$default",
    ) -> Scope:
        """Return the ASGI scope of a request. Its path does not contain the stage, nor the base path.

        An HTTP API's paths begin with its stage, with a custom domain too
        (https://github.com/CodeGenieApp/serverless-express/issues/465): with the stage `prod`, `/prod` means `/`. The
        base path is removed if it is there and a path follows; the same API has an address without it. Mangum's
        strip_api_gateway_path is not used: with the base path /p it would turn /predict into redict.
        """
        path = unquote(path) or "/"
        if stage != "$default" and f"{path}/".startswith(f"/{stage}/"):
            path = path.removeprefix(f"/{stage}") or "/"
        base = self.config["api_gateway_base_path"].rstrip("/")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": headers.get(b"x-forwarded-proto", b"https").decode(),
            "path": path.removeprefix(base) if path.startswith(f"{base}/") else path,
            "query_string": query,
            "headers": [*headers.items()],
            "client": (source_ip, 0),
            "aws.event": self.event,
            "aws.context": self.context,
        }


class HttpApi(CheckedEvent, HTTPGateway):
    """An HTTP API with payload 2.0, or a function URL."""

    def _read(self) -> Scope:
        context = self.event["requestContext"]
        http = read(context, "http", dict, CONTEXT, {})
        headers = _headers(self.event)
        if cookies := read_texts(self.event, "cookies"):
            headers[b"cookie"] = "; ".join(cookies).encode()
        query = read(self.event, "rawQueryString", str, default="")
        method = read(http, "method", str, HTTP)
        path = read(http, "path", str, HTTP)
        stage = read(context, "stage", str, CONTEXT, "$default")
        return self._make_scope(method, path, headers, query.encode(), http.get("sourceIp"), stage)


class RestApi(CheckedEvent, APIGateway):
    """A REST API, or an HTTP API with payload 1.0."""

    def _read(self) -> Scope:
        method, path, headers, query = _payload_1(self.event)
        identity = read(self.event["requestContext"], "identity", dict, CONTEXT, {})
        encoded = urlencode(query, doseq=True).encode() if query else b""
        return self._make_scope(method, path, headers, encoded, identity.get("sourceIp"))


class LoadBalancer(CheckedEvent, ALB):
    """An Application Load Balancer. Mangum replies with lists of headers if the event has such lists."""

    def _read(self) -> Scope:
        if self.event.get("multiValueHeaders", {}) is None:  # Mangum tests only whether the key is there
            self.event = {name: value for name, value in self.event.items() if value is not None}
        method, path, headers, query = _payload_1(self.event)
        source_ip = headers.get(b"x-forwarded-for", b"").decode()
        return self._make_scope(method, path, headers, encode_query_string_for_alb(query), source_ip)


class OtherEvent(CheckedEvent, HTTPGateway):
    """A ping, a direct invocation, or an event that is not a request. The reply has the format of an HTTP API."""

    def _read(self) -> Scope:
        from function.events.other import as_request  # not needed to start

        event, self.event = self.event, {"version": "2.0"}  # Mangum reads the format of the reply here
        method, path, body, log_as = as_request(event)
        self.event["body"] = body
        headers = {b"content-type": b"application/json"} if body else {}
        return self._make_scope(method, path, headers) | {"log_as": log_as, "is_direct": True}


def format_of(event: object) -> type[CheckedEvent]:
    """Return the handler for an event."""
    if not isinstance(event, dict) or "methodArn" in event or "routeArn" in event:
        return OtherEvent  # an authorizer's event contains the whole request and one of these fields
    context = event.get("requestContext")
    if not isinstance(context, dict):
        return OtherEvent
    if "elb" in context:
        return LoadBalancer
    if "http" in context and event.get("version") == "2.0":
        return HttpApi
    return RestApi if "resource" in event else OtherEvent


def _payload_1(event: Event) -> tuple[str, str, Headers, QueryParams]:
    """Return method, path, headers and query, which REST APIs and load balancers send in the same fields."""
    method, path = read(event, "httpMethod", str), read(event, "path", str)
    lists = read(event, "multiValueQueryStringParameters", dict, default={})  # contain the plain parameters too
    if not lists:
        single = read(event, "queryStringParameters", dict, default={})
        lists = {name: None if value is None else [value] for name, value in single.items()}
    query: QueryParams = {_name(name): read_texts(lists, name, "event.queryStringParameters") for name in lists}
    return method, path, _headers(event), query


def _headers(event: Event) -> Headers:
    """Return the headers by name in lower case. Several values of one name are joined by commas, as in HTTP."""
    plain, lists = read(event, "headers", dict, default={}), read(event, "multiValueHeaders", dict, default={})
    try:  # faster than `read`, and enough if all values are strings of valid Unicode
        headers = {name.lower().encode(): value.encode() for name, value in plain.items()}
    except (AttributeError, UnicodeEncodeError):
        texts = {_name(name): value for name, value in plain.items() if value is not None}
        headers = {name.lower().encode(): read(texts, name, str, "event.headers").encode() for name in texts}
    for name, values in lists.items():
        if values is not None:
            joined = ", ".join(read_texts(lists, name, "event.multiValueHeaders"))
            headers[_name(name).lower().encode()] = joined.encode()
    return headers


def _name(name: str) -> str:
    """Return the name of a header or parameter. Raises EventError if it is not valid Unicode."""
    if not name.isascii():
        encode(name, f"event: the name {name}")
    return name


def _body(event: Event) -> bytes:
    """Return the body. Raises EventError if it is not a string, or not base64 although isBase64Encoded is true."""
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise wrong("event.body", body, "a string, the request's body as it was sent")
    if not read(event, "isBase64Encoded", bool, default=False):
        return encode(body, "event.body")
    try:
        return b64decode(body, validate=True)  # without validate, b64decode skips characters that are not base64
    except ValueError as error:
        raise EventError(f"body: not base64, though isBase64Encoded is true; {RIGHT_BODY}, in base64") from error
