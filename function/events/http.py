"""HTTP events, checked before Mangum reads them.

Mangum trusts that an event is as AWS documents it, and raises whatever Python raises if a field is not. Here the fields
that it reads are checked once and copied, and no others: what comes out can be trusted.

A checked event has three fields of our own: `refusal`, the message of the 400 that it must be answered with, or None,
`log_as`, the message of its line in the log, and `is_direct`, whether it came without HTTP, from who may invoke the
function.
"""

from base64 import b64decode

from function.errors import RIGHT_BODY
from function.events.fields import (
    Event,
    EventError,
    encode,
    read_object,
    read_optional_text,
    read_text,
    read_texts,
    wrong,
)

LONGEST_PORT = 5  # digits


def http_event(event: object) -> Event | None:
    """Return the checked copy of an HTTP request's event, or None if the event is not one of Mangum's three formats.

    Raises EventError if a field that Mangum reads is missing or of another type.
    """
    if not isinstance(event, dict) or "methodArn" in event or "routeArn" in event:
        return None  # an authorizer's event is the whole request and one of these
    context = event.get("requestContext")
    if not isinstance(context, dict):
        return None
    if "elb" in context:
        return _load_balancer(event)
    if "http" in context and event.get("version") == "2.0":
        return _http_api(event, context)
    return _rest_api(event, context) if "resource" in event else None


def make_event(method: str, path: str, body: bytes = b"", refusal: str | None = None, log_as: str = "request") -> Event:
    """Return a checked event in the format of an HTTP API, payload 2.0, with or without a body of JSON."""
    return {
        "version": "2.0",
        "headers": {"content-type": "application/json"} if body else {},
        "requestContext": {"http": {"method": method, "path": path, "sourceIp": None}},
        "body": body,
        "refusal": refusal,
        "log_as": log_as,
        "is_direct": True,
    }


def _http_api(event: Event, context: Event) -> Event:
    """HTTP API with payload 2.0, or function URL."""
    http = read_object(context, "http", "event.requestContext")
    return {
        "version": "2.0",
        "headers": _headers(event),
        "cookies": read_texts(event, "cookies"),
        "rawQueryString": read_optional_text(event, "rawQueryString", ""),
        "requestContext": {
            "http": {
                "method": read_text(http, "method", "event.requestContext.http"),
                "path": read_text(http, "path", "event.requestContext.http"),
                "sourceIp": http.get("sourceIp"),
            },
            "stage": read_optional_text(context, "stage", "$default", "event.requestContext"),
        },
        "body": _body(event),
        "refusal": None,
        "log_as": "request",
        "is_direct": False,
    }


def _rest_api(event: Event, context: Event) -> Event:
    """REST API, or HTTP API with payload 1.0."""
    return _payload_1(event) | {
        "resource": "",
        "headers": _headers(event),
        "requestContext": {"identity": read_object(context, "identity", "event.requestContext")},
    }


def _load_balancer(event: Event) -> Event:
    """Load balancer. The reply's headers are lists if the event's are, so they stay lists for Mangum."""
    checked = _payload_1(event) | {"requestContext": {"elb": {}}}
    if event.get("multiValueHeaders") is None:
        return checked | {"headers": _headers(event)}
    return checked | {"multiValueHeaders": {name: [value] for name, value in _headers(event).items()}}


def _payload_1(event: Event) -> Event:
    """What REST APIs and load balancers have in common."""
    return {
        "httpMethod": read_text(event, "httpMethod"),
        "path": read_text(event, "path"),
        "queryStringParameters": _query(event),
        "body": _body(event),
        "refusal": None,
        "log_as": "request",
        "is_direct": False,
    }


def _body(event: Event) -> bytes:
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise wrong("event.body", body, "a string, the request's body as it was sent")
    is_base64 = event.get("isBase64Encoded")
    if is_base64 is False or is_base64 is None:
        return encode(body, "event.body")
    if is_base64 is not True:
        raise wrong("event.isBase64Encoded", is_base64, "true or false")
    try:
        return b64decode(body, validate=True)  # without validate, characters that are not base64 would be left out
    except ValueError as error:
        raise EventError(f"body: not base64, though isBase64Encoded is true; {RIGHT_BODY}, in base64") from error


def _headers(event: Event) -> dict[str, str]:
    """Return the headers by their names in lower case; several values of one name are joined by commas, as in HTTP."""
    headers = read_object(event, "headers")
    names = "".join(headers)
    try:
        (names + "".join(headers.values())).encode()  # mostly all are strings of valid Unicode: one step tells
    except (TypeError, UnicodeEncodeError):
        headers = {
            _name(name): read_text(headers, name, "event.headers")
            for name, value in headers.items()
            if value is not None
        }
    if not names.islower():
        headers = {name.lower(): value for name, value in headers.items()}
    lists = read_object(event, "multiValueHeaders")
    if lists:
        headers = headers | {
            _name(name).lower(): ", ".join(read_texts(lists, name, "event.multiValueHeaders"))
            for name, values in lists.items()
            if values is not None
        }
    # Mangum takes what follows a colon in the host, or else x-forwarded-port, for a number. An IPv6 address has more
    # colons, and two proxies leave two ports. No route reads them, so such a value is left out rather than refused.
    _, colon, port = headers.get("host", "").partition(":")
    if colon and not _is_port(port):
        headers = {name: value for name, value in headers.items() if name != "host"}
    if not _is_port(headers.get("x-forwarded-port", "443")):
        headers = {name: value for name, value in headers.items() if name != "x-forwarded-port"}
    return headers


def _name(name: str) -> str:
    """Return the name of a header or parameter. Raises EventError if it is not valid Unicode."""
    if not name.isascii():
        encode(name, f"event: the name {name}")
    return name


def _is_port(text: str) -> bool:
    return text.isdecimal() and len(text) <= LONGEST_PORT


def _query(event: Event) -> dict[str, list[str]]:
    """Return the parameters of the query: the lists if there are any, as they hold the others too."""
    lists = read_object(event, "multiValueQueryStringParameters")
    if not lists:
        single = read_object(event, "queryStringParameters")
        lists = {name: None if value is None else [value] for name, value in single.items()}
    return {_name(name): read_texts(lists, name, "event.queryStringParameters") for name in lists}
