"""Web pages on other origins: what the server answers to their browsers, and the function where AWS does not."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from semsearch.app.app import App
from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key, read_settings
from tests.app_fixtures import answering
from tests.function.events.event_makers import MAKERS, function_url, http_api, http_api_with_payload_1

PAGE = "https://app.example"
KEY = "0123456789abcdef"
SETTINGS = Settings(cors_origins=(PAGE, "http://localhost:3000"), api_keys=(ApiKey("page", hash_key(KEY)),))
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}
GOOSE = {"text": "goose"}


@pytest.fixture(scope="module")
def allowing(connect: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of an app that pages on two origins may ask with a key."""
    return connect(settings=SETTINGS)


def ask(client: httpx.Client, origin: str | None, key: str = KEY) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} | ({} if origin is None else {"origin": origin})
    return client.post("/similar", json=GOOSE, headers=headers)


def test_a_browser_may_ask_first_without_the_api_key(allowing: httpx.Client) -> None:
    reply = allowing.options("/similar", headers=PREFLIGHT)
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == PAGE
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert reply.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
    assert "access-control-allow-credentials" not in reply.headers
    own_network = allowing.options("/similar", headers=PREFLIGHT | {"access-control-request-private-network": "true"})
    assert own_network.headers["access-control-allow-private-network"] == "true"


@pytest.mark.parametrize("key", [KEY, "wrong"])
@pytest.mark.parametrize("origin", SETTINGS.cors_origins)
def test_a_page_may_read_replies_and_refusals(allowing: httpx.Client, origin: str, key: str) -> None:
    reply = ask(allowing, origin, key)
    assert reply.status_code == (200 if key == KEY else 401)
    assert reply.headers["access-control-allow-origin"] == origin
    assert "x-request-id" in reply.headers["access-control-expose-headers"]
    assert reply.headers["vary"] == "Origin"


@pytest.mark.parametrize("origin", ["https://other.example", "https://app.example.evil.example", None])
def test_other_pages_may_not_read_replies(allowing: httpx.Client, origin: str | None) -> None:
    assert "access-control-allow-origin" not in ask(allowing, origin).headers
    if origin is not None:
        refused = allowing.options("/similar", headers=PREFLIGHT | {"origin": origin})
        assert refused.status_code == 400
        assert "access-control-allow-origin" not in refused.headers


def test_by_default_no_page_may_ask(client: httpx.Client) -> None:
    assert client.options("/similar", headers=PREFLIGHT).status_code == 405
    assert not [name for name in ask(client, PAGE).headers if name.startswith("access-control")]


def test_pages_that_may_ask_may_also_ask_mcp(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=read_settings({"CORS_ORIGINS": f"{PAGE},http://localhost:3000"}))
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    statuses = [
        client.post("/mcp", json=message, headers={"origin": page}).status_code for page in (PAGE, "https://x.y")
    ]
    assert statuses == [200, 403]


# --- Lambda

Answer = Callable[[object], dict[str, Any]]
WITH_OWN_RULES = (http_api, http_api_with_payload_1, function_url)  # AWS adds the headers that its own rules state


@pytest.fixture(scope="module")
def answer_pages(make_app: Callable[..., App]) -> Iterator[Answer]:
    """Return what answers an event of a function with CORS origins."""
    settings = read_settings({"AWS_LAMBDA_FUNCTION_NAME": "stories", "CORS_ORIGINS": PAGE})
    with answering(make_app(settings=settings)) as answer:
        yield answer


def headers_of(answer: Answer, event: dict[str, Any], more: dict[str, str]) -> list[tuple[str, str]]:
    """Return the headers of the reply to an event with further headers. A header that comes twice is there twice."""
    name = "headers" if "headers" in event else "multiValueHeaders"
    is_list = any(isinstance(value, list) for value in event[name].values())
    reply = answer(event | {name: event[name] | {key: [value] if is_list else value for key, value in more.items()}})
    lists = reply.get("multiValueHeaders", {}).items()
    return [*reply.get("headers", {}).items(), *((key, value) for key, values in lists for value in values)]


@pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])
def test_in_lambda_the_function_adds_the_headers_where_aws_does_not(
    answer_pages: Answer, make: Callable[..., dict[str, Any]]
) -> None:
    event = make("POST", "/similar", json.dumps(GOOSE))
    found = [
        value for name, value in headers_of(answer_pages, event, {"origin": PAGE}) if name.endswith("allow-origin")
    ]
    asked = dict(headers_of(answer_pages, make("OPTIONS", "/similar", None), PREFLIGHT))
    if make in WITH_OWN_RULES:
        assert found == []
        assert not [name for name in asked if name.startswith("access-control")]
    else:
        assert found == [PAGE]
        assert (asked["access-control-allow-origin"], "POST" in asked["access-control-allow-methods"]) == (PAGE, True)


NO_ORIGINS = ("example.com", "https://example.com/", "https://Example.com", "https://example.com:443", "null")


@pytest.mark.parametrize("origin", NO_ORIGINS)
def test_what_no_browser_sends_as_an_origin_is_an_error(origin: str) -> None:
    with pytest.raises(SettingsError, match=r"^CORS_ORIGINS: '.*', expected .*; write https://example\.com, or \*"):
        read_settings({"CORS_ORIGINS": f"{PAGE} {origin}"})
