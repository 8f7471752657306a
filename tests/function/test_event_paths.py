"""What events have in front of a route, an HTTP API's stage and a base path: neither is taken for the other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function.events.adapter import route_path


def http_api(path: str, stage: str = "$default") -> dict[str, Any]:
    """The event of an HTTP API: its paths begin with the stage, but for $default."""
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"http": {"method": "GET", "path": path, "sourceIp": "203.0.113.7"}, "stage": stage},
        "isBase64Encoded": False,
    }


def rest_api(path: str, stage: str) -> dict[str, Any]:
    """The event of a REST API: its paths begin with a custom domain's base path, and never with the stage."""
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": "GET",
        "headers": {},
        "requestContext": {"identity": {"sourceIp": "203.0.113.7"}, "path": f"/{stage}{path}", "stage": stage},
        "isBase64Encoded": False,
    }


def load_balancer(path: str) -> dict[str, Any]:
    return {"requestContext": {"elb": {"targetGroupArn": "arn"}}, "httpMethod": "GET", "path": path, "headers": {}}


@pytest.mark.parametrize(
    ("path", "stage", "expected"),
    [
        ("/prod/similar", "prod", "/similar"),
        ("/prod/prod/similar", "prod", "/prod/similar"),
        ("/similar/similar", "similar", "/similar"),
        ("/similar", "similar", "/"),
        ("/similar/", "similar", "/"),
        ("/prod", "prod", "/"),
        ("/similar", "prod", "/similar"),
        ("/production/similar", "prod", "/production/similar"),
        ("/similar", "$default", "/similar"),
        ("/$default/similar", "$default", "/$default/similar"),
    ],
)
def test_the_stage_of_an_http_api_is_no_part_of_the_route(path: str, stage: str, expected: str) -> None:
    assert route_path(path, http_api(path, stage), "/") == expected


def test_an_event_without_a_stage_has_none_in_front() -> None:
    assert route_path("/prod/similar", {"version": "2.0", "requestContext": {}}, "/") == "/prod/similar"


def test_the_stage_of_a_rest_api_is_not_in_front_of_its_paths() -> None:
    assert route_path("/prod/similar", rest_api("/prod/similar", "prod"), "/") == "/prod/similar"


@pytest.mark.parametrize(
    ("path", "base_path", "expected"),
    [
        ("/base/similar", "/base", "/similar"),
        ("/base/similar", "/base/", "/similar"),
        ("/base/similar", "/", "/base/similar"),
        ("/my/base/similar", "/my/base", "/similar"),
        ("/similar/similar", "/similar", "/similar"),
        ("/similar", "/similar", "/similar"),
        ("/similar", "/base", "/similar"),
        ("/predict", "/p", "/predict"),
        ("/basement/similar", "/base", "/basement/similar"),
        ("/base/base/similar", "/base", "/base/similar"),
        ("/base", "/base", "/base"),
        ("/base/", "/base", "/"),
    ],
)
def test_the_base_path_is_taken_off_where_a_path_follows(path: str, base_path: str, expected: str) -> None:
    for event in (rest_api(path, "prod"), load_balancer(path), http_api(path)):
        assert route_path(path, event, base_path) == expected


def test_the_stage_comes_before_the_base_path() -> None:
    assert route_path("/prod/base/similar", http_api("/prod/base/similar", "prod"), "/base") == "/similar"


ANSWER = """
import json, sys
from function.handler import handler
print("\\n" + json.dumps([handler(event, None)["statusCode"] for event in json.loads({events!r})]))
"""


@pytest.mark.parametrize(
    ("base_path", "statuses"), [("/", [200, 404, 200, 404, 404]), ("/similar", [200, 200, 200, 200, 200])]
)
def test_the_handler_answers_at_the_route_behind_stage_and_base_path(
    in_a_new_process: Callable[..., Any], bundle: Path, base_path: str, statuses: list[int]
) -> None:
    events = [
        http_api("/prod/health", "prod"),
        rest_api("/similar/health", "prod"),
        rest_api("/health", "prod"),
        load_balancer("/similar/health"),
        http_api("/prod/similar/health", "prod"),
    ]
    script = ANSWER.format(events=json.dumps(events))
    assert in_a_new_process(script, BUNDLE_DIR=str(bundle), API_BASE_PATH=base_path) == statuses
