"""Events as AWS sends them: one maker for each source, called with method, path and body, or None without a body.

The path is encoded, as callers send it. An HTTP API decodes it; the other sources do not. The actions of agents are not
HTTP, so they are not among MAKERS.

They are shortened from AWS's own examples:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
https://docs.aws.amazon.com/lambda/latest/dg/services-alb.html
https://docs.aws.amazon.com/vpc-lattice/latest/ug/lambda-functions.html
https://docs.aws.amazon.com/bedrock/latest/userguide/agents-lambda.html
"""

import json
from typing import Any
from urllib.parse import unquote

HEADERS = {"Content-Type": "application/json", "Host": "stories.example.com", "X-Forwarded-Proto": "https"}

Event = dict[str, Any]


def http_api(method: str, path: str, body: str | None) -> Event:
    """API Gateway HTTP API, payload format 2.0."""
    event: Event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": unquote(path),
        "rawQueryString": "",
        "headers": {name.lower(): value for name, value in HEADERS.items()},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "r3pmxmplak",
            "domainName": "r3pmxmplak.execute-api.eu-central-1.amazonaws.com",
            "http": {"method": method, "path": unquote(path), "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": 1583348638390,
        },
        "isBase64Encoded": False,
    }
    return event if body is None else event | {"body": body}  # absent, not null


def function_url(method: str, path: str, body: str | None) -> Event:
    """A function URL: the HTTP API's format, with other values."""
    event = http_api(method, path, body)
    event["requestContext"] |= {"apiId": "abc123", "domainName": "abc123.lambda-url.eu-central-1.on.aws"}
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    return event


def rest_api(method: str, path: str, body: str | None) -> Event:
    """API Gateway REST API, payload format 1.0."""
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": HEADERS,
        "multiValueHeaders": {name: [value] for name, value in HEADERS.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": path.removeprefix("/")},
        "stageVariables": None,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "wt6mne2s9k",
            "httpMethod": method,
            "identity": {"sourceIp": "203.0.113.7", "userAgent": "curl/8.5.0"},
            "path": f"/prod{path}",
            "resourcePath": "/{proxy+}",
            "stage": "prod",
        },
        "body": body,
        "isBase64Encoded": False,
    }


def http_api_with_payload_1(method: str, path: str, body: str | None) -> Event:
    """API Gateway HTTP API, payload format 1.0: as a REST API's, with a version, a decoded path and other headers."""
    event = rest_api(method, unquote(path), body)
    event["requestContext"] |= {"path": unquote(path), "stage": "$default"}
    return event | {"version": "1.0"}


def load_balancer(method: str, path: str, body: str | None) -> Event:
    """An Application Load Balancer."""
    group = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/stories/6d0ecf831eec9f09"
    return {
        "requestContext": {"elb": {"targetGroupArn": group}},
        "httpMethod": method,
        "path": path,
        "queryStringParameters": {},
        "headers": {name.lower(): value for name, value in HEADERS.items()} | {"x-forwarded-for": "203.0.113.7"},
        "body": body or "",
        "isBase64Encoded": False,
    }


def load_balancer_with_lists(method: str, path: str, body: str | None) -> Event:
    """A load balancer whose target group has multi-value headers turned on."""
    event = load_balancer(method, path, body)
    event["multiValueHeaders"] = {name: [value] for name, value in event.pop("headers").items()}
    event["multiValueQueryStringParameters"] = event.pop("queryStringParameters")
    return event


def lattice(method: str, path: str, body: str | None) -> Event:
    """VPC Lattice, event structure V2."""
    return {
        "version": "2.0",
        "path": path,
        "method": method,
        "headers": {name.lower(): [value] for name, value in HEADERS.items()} | {"x-forwarded-for": ["203.0.113.7"]},
        "queryStringParameters": {},
        "body": body or "",
        "isBase64Encoded": False,
        "requestContext": {
            "serviceNetworkArn": "arn:aws:vpc-lattice:eu-central-1:123456789012:servicenetwork/sn-0123456789abcdef0",
            "serviceArn": "arn:aws:vpc-lattice:eu-central-1:123456789012:service/svc-0123456789abcdef0",
            "targetGroupArn": "arn:aws:vpc-lattice:eu-central-1:123456789012:targetgroup/tg-0123456789abcdef0",
            "identity": {"sourceVpcArn": "arn:aws:ec2:eu-central-1:123456789012:vpc/vpc-0123456789abcdef0"},
            "region": "eu-central-1",
            "timeEpoch": "1795252524117000",
        },
    }


def lattice_1(method: str, path: str, body: str | None) -> Event:
    """VPC Lattice, event structure V1, which is the default."""
    return {
        "raw_path": path,
        "method": method,
        "headers": {name.lower(): value for name, value in HEADERS.items()} | {"x-forwarded-for": "203.0.113.7"},
        "query_string_parameters": {},
        "body": body or "",
        "is_base64_encoded": False,
    }


def agent_operation(method: str, path: str, body: Event | None = None, parameters: Event | None = None) -> Event:
    """An operation of a Bedrock agent's action group, of an OpenAPI schema; body and parameters are by name."""
    event = _agent_event() | {"apiPath": path, "httpMethod": method, "parameters": _properties(parameters or {})}
    content = {"application/json": {"properties": _properties(body or {})}}
    return event if body is None else event | {"requestBody": {"content": content}}


def agent_function(name: str, parameters: Event) -> Event:
    """A function of a Bedrock agent's action group, which has no OpenAPI schema."""
    return _agent_event() | {"function": name, "parameters": _properties(parameters)}


def _agent_event() -> Event:
    return {
        "messageVersion": "1.0",
        "agent": {"name": "librarian", "id": "Q4XJ2M7TZK", "alias": "TSTALIASID", "version": "DRAFT"},
        "inputText": "Which story has a goose?",
        "sessionId": "271828182845904",
        "actionGroup": "stories",
        "sessionAttributes": {"reader": "7"},
        "promptSessionAttributes": {},
    }


def _properties(values: Event) -> list[Event]:
    """Return values as an agent sends them: as text, with the type of the schema."""
    types = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
    return [
        {"name": name, "type": types[type(value)], "value": value if isinstance(value, str) else json.dumps(value)}
        for name, value in values.items()
    ]


def taking_gzip(event: Event) -> Event:
    """Return the event of a caller that takes gzip, as a browser does."""
    name = "multiValueHeaders" if "multiValueHeaders" in event and "headers" not in event else "headers"
    accepted = "gzip, deflate, br, zstd"
    return event | {name: event[name] | {"accept-encoding": [accepted] if name == "multiValueHeaders" else accepted}}


MAKERS = [
    *(http_api, http_api_with_payload_1, function_url, rest_api, load_balancer, load_balancer_with_lists),
    *(lattice, lattice_1),
]
