"""A server of this machine alone answers only requests for this machine, or for hosts that its operator allows."""

from collections.abc import Callable

import httpx
import pytest

from semsearch.app.access.keys import accepted_hosts
from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key, read_settings

PATHS = ("/", "/health", "/info", "/similar", "/mcp", "/openapi.json", "/passages/story-007", "/v1/models", "/nothing")
KEYS = Settings(api_keys=(ApiKey("test", hash_key("0123456789abcdef")),))
LOCAL = Settings(allowed_hosts=accepted_hosts("127.0.0.1", Settings()))


@pytest.fixture(scope="module")
def local(connect: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of an app that answers for this machine alone."""
    return connect(settings=LOCAL)


@pytest.mark.parametrize("path", PATHS)
def test_every_route_refuses_a_request_for_another_host(local: httpx.Client, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        reply = local.request(method, path, headers={"host": "rebound.example:8000"})
        assert reply.status_code == 421
        assert "x-request-id" in reply.headers  # it is logged
        message = "host: found 'rebound.example:8000', expected localhost, 127.0.0.1, [::1], with any port"
        assert (message in reply.text) == (method != "HEAD")


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "LocalHost:1", "127.0.0.1:8000", "[::1]", "[::1]:80"])
def test_a_request_for_this_machine_is_answered(local: httpx.Client, host: str) -> None:
    assert local.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["", "localhost.example", "127.0.0.1.example:80", "::1", "localhost:80:80", "localhost/", "a@localhost"]
)
def test_a_name_that_only_looks_like_this_machines_is_refused(local: httpx.Client, host: str) -> None:
    assert local.get("/health", headers={"host": host}).status_code == 421


def test_a_server_for_other_machines_accepts_any_name_unless_one_is_allowed() -> None:
    allowed = read_settings({"ALLOWED_HOSTS": "Search.example.com, 10.0.0.1"})
    this_machine = ("localhost", "127.0.0.1", "[::1]")
    assert accepted_hosts("0.0.0.0", KEYS) == ()
    assert accepted_hosts("0.0.0.0", allowed) == (*this_machine, "0.0.0.0", "search.example.com", "10.0.0.1")
    assert accepted_hosts("127.0.0.1", allowed) == (*this_machine, "search.example.com", "10.0.0.1")
    assert accepted_hosts("127.0.1.1", KEYS) == (*this_machine, "127.0.1.1")
    assert accepted_hosts("::1", KEYS) == this_machine


@pytest.mark.parametrize("name", ["https://example.com", "example.com:443", "example.com/search", "*", "exämple.com"])
def test_what_is_no_name_of_a_host_is_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match=r"^ALLOWED_HOSTS: '.*', expected .*; write search\.example\.com$"):
        read_settings({"ALLOWED_HOSTS": f"example.com {name}"})
