"""Web pages on other origins: what the server answers to their browsers."""

from collections.abc import Callable

import httpx
import pytest

from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key, read_settings

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


NO_ORIGINS = ("example.com", "https://example.com/", "https://Example.com", "https://example.com:443", "null")


@pytest.mark.parametrize("origin", NO_ORIGINS)
def test_what_no_browser_sends_as_an_origin_is_an_error(origin: str) -> None:
    with pytest.raises(SettingsError, match=r"^CORS_ORIGINS: '.*', expected .*; write https://example\.com, or \*"):
        read_settings({"CORS_ORIGINS": f"{PAGE} {origin}"})
