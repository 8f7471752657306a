"""GET /: the page as it is sent, to browsers and others, by the server and through Lambda's events."""

import gzip
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import httpx
import pytest

from tests.function.events.event_makers import http_api, rest_api, taking_gzip

BROWSER = "gzip, deflate, br, zstd"
TWENTY_KILOBYTES = 20_000


def bytes_of(client: httpx.Client, accepted: str | None) -> tuple[httpx.Headers, bytes]:
    """Return the headers and the bytes of the page as they were sent, for this Accept-Encoding."""
    headers = {"accept-encoding": accepted} if accepted is not None else {"accept-encoding": ""}
    with client.stream("GET", "/", headers=headers) as reply:
        assert reply.status_code == 200
        return reply.headers, b"".join(reply.iter_raw())


def test_a_browser_gets_the_page_compressed(client: httpx.Client) -> None:
    headers, sent = bytes_of(client, BROWSER)
    assert (headers["content-type"], headers["content-encoding"]) == ("text/html; charset=utf-8", "gzip")
    assert gzip.decompress(sent).startswith(b"<!doctype html>")
    assert int(headers["content-length"]) == len(sent) < TWENTY_KILOBYTES


@pytest.mark.parametrize("accepted", ["", "br"])
def test_a_client_that_takes_no_gzip_gets_the_same_page_plain(client: httpx.Client, accepted: str) -> None:
    headers, sent = bytes_of(client, accepted)
    assert "content-encoding" not in headers
    assert sent == gzip.decompress(bytes_of(client, "gzip")[1])


@pytest.mark.parametrize("known", ["{}", '"other", {}'])
def test_who_has_the_page_gets_304_without_it(client: httpx.Client, known: str) -> None:
    etag = client.get("/").headers["etag"]
    reply = client.get("/", headers={"if-none-match": known.format(etag)})
    assert (reply.status_code, reply.content, reply.headers["etag"]) == (304, b"", etag)
    assert "cache-control" in reply.headers
    assert etag == f'W/"{sha256(client.get("/").content).hexdigest()[:32]}"'


def test_the_policy_allows_this_style_and_these_scripts_and_nothing_else(client: httpx.Client) -> None:
    reply = client.get("/")
    policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy)
    for tag in ("style", "script"):
        contents = re.findall(rf"<{tag}>(.*?)</{tag}>", reply.text, re.DOTALL)
        hashes = [f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in contents]
        assert hashes
        assert policy[f"{tag}-src"].split() == hashes


def test_the_page_names_nothing_outside_of_itself(client: httpx.Client) -> None:
    text = client.get("/").text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?:|(?<!:)//\w|\burl\(|@import", text)
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text)


def test_no_text_can_become_html(client: httpx.Client) -> None:
    text = client.get("/").text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", text)
    assert "require-trusted-types-for 'script'" in client.get("/").headers["content-security-policy"]


def test_lambda_sends_the_bytes_that_the_server_sends(
    client: httpx.Client, answer: Callable[[object], dict[str, Any]]
) -> None:
    reply = answer(taking_gzip(http_api("GET", "/", None)))
    assert (reply["statusCode"], reply["isBase64Encoded"]) == (200, True)
    assert reply["headers"]["content-encoding"] == "gzip"
    assert b64decode(reply["body"]) == bytes_of(client, "gzip")[1]


def test_a_rest_api_which_may_not_know_what_is_binary_gets_the_page_as_text(
    client: httpx.Client, answer: Callable[[object], dict[str, Any]]
) -> None:
    reply = answer(taking_gzip(rest_api("GET", "/", None)))
    assert (reply["statusCode"], reply["isBase64Encoded"]) == (200, False)
    assert reply["body"].encode() == bytes_of(client, "")[1]
