"""API Gateway events, as HTTP APIs send them (payload format 2.0)."""

import json
from typing import Any


class Context:
    """What the handler reads of Lambda's context object."""

    function_name = "bench"
    memory_limit_in_mb = 512
    aws_request_id = "00000000-0000-0000-0000-000000000000"
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:bench"


def http_event(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Give the event of a POST with a JSON body, or of a GET without one."""
    method = "GET" if body is None else "POST"
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "example.org", "accept": "*/*"},
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "bench",
            },
            "domainName": "example.org",
            "requestId": "bench",
            "stage": "$default",
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }
