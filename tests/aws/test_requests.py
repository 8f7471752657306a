"""Requests to AWS: credentials from the environment or from its local address, and botocore's signature."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import hypothesis.strategies as st
import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given

from semsearch.aws import requests as aws
from semsearch.aws.requests import Credentials, CredentialsError, CredentialSource, sign

NOW = datetime(2026, 11, 22, 7, 8, 9, tzinfo=UTC)
SECRETS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


def botocores(service: str, method: str, target: str, headers: dict[str, str], body: bytes, token: str | None) -> Any:
    """Return the headers that botocore makes."""
    kind: Callable[..., Any] = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    request = AWSRequest(method, f"https://example.amazonaws.com{target}", headers, body)
    if service != "s3":  # which has this header always
        request.headers["x-amz-content-sha256"] = sha256(body).hexdigest()
    request.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
    signer = kind(BotocoreCredentials(*SECRETS, token), service, "eu-central-1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None))
        signer.add_auth(request)
    return request.headers


def ours(
    service: str, method: str, target: str, headers: dict[str, str], body: bytes, token: str | None
) -> dict[str, str]:
    credentials = Credentials(*SECRETS, token)
    host = "example.amazonaws.com"
    return sign(method, host, target, headers, body, credentials, "eu-central-1", service, NOW)


@pytest.mark.parametrize(
    ("service", "method", "target", "headers", "body", "token"),
    [
        ("s3vectors", "POST", "/QueryVectors", {"content-type": "application/json"}, b'{"topK": 5}', None),
        ("s3vectors", "GET", "/tags/arn%3Aaws%3As3", {}, b"", None),
        ("execute-api", "GET", "/passages/a%23b?before=2&after=1&after-all=%3D", {}, b"", None),
        ("s3", "GET", "/bucket/a%20prefix/current.json", {"if-none-match": '"etag"'}, b"", "token"),
        ("s3", "GET", quote("/my texts/über/a+b=c&d~e'(1)*.json", safe="/-_.~"), {}, b"", "a/session+token=="),
    ],
)
def test_a_request_has_the_signature_that_botocore_makes(
    service: str, method: str, target: str, headers: dict[str, str], body: bytes, token: str | None
) -> None:
    expected = botocores(service, method, target, headers, body, token)
    found = ours(service, method, target, headers, body, token)
    assert found["authorization"] == expected["Authorization"]
    assert found["x-amz-date"] == expected["X-Amz-Date"]
    assert found.get("x-amz-security-token") == expected.get("X-Amz-Security-Token")


KEY = st.text("abc-_.~/+=&? äß🦆", min_size=1, max_size=12)


@given(body=st.binary(max_size=40), names=st.lists(KEY, max_size=3))
def test_so_has_any_other(body: bytes, names: list[str]) -> None:
    path = "/" + "/".join(quote(name, safe="-_.~") for name in names if name.strip("./"))
    found = ours("s3", "PUT", path, {}, body, None)
    assert found["authorization"] == botocores("s3", "PUT", path, {}, body, None)["Authorization"]


def test_secrets_do_not_show() -> None:
    assert "wJalr" not in repr(Credentials(*SECRETS, "token"))
    assert "token" not in repr(Credentials(*SECRETS, "token"))


KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


class Local(HTTPServer):
    """Answers with credentials that expire an hour after `NOW`, and remembers what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []  # path, token
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["authorization"]))
                number = len(outer.asked)
                reply = {"AccessKeyId": f"key-{number}", "SecretAccessKey": "secret", "Token": "token"}
                reply["Expiration"] = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def local() -> Iterator[Local]:
    with Local() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environment(local: Local) -> dict[str, str]:
    """What Lambda tells a restored function."""
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{local.url}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "lambdas",
    }


def test_those_of_the_environment_are_taken_first(local: Local, environment: dict[str, str]) -> None:
    assert CredentialSource(environment | KEYS).get(NOW) == Credentials("key", "secret")
    assert CredentialSource(KEYS | {"AWS_SESSION_TOKEN": "t"}).get(NOW) == Credentials("key", "secret", "t")
    assert not local.asked


def test_a_restored_function_asks_the_address_once_until_they_expire(local: Local, environment: dict[str, str]) -> None:
    source = CredentialSource(environment)
    assert source.get(NOW) == Credentials("key-1", "secret", "token")
    assert source.get(NOW + timedelta(minutes=54)).access_key == "key-1"
    assert local.asked == [("/credentials", "lambdas")]
    assert source.get(NOW + timedelta(minutes=56)).access_key == "key-2"


def test_a_container_has_a_path_and_a_token_file(local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws, "CONTAINER", local.url)
    (tmp_path / "token").write_text("of the file\n")
    environment = {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials?id=7",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert CredentialSource(environment).get(NOW).access_key == "key-1"
    assert local.asked == [("/v2/credentials?id=7", "of the file")]


def test_an_address_that_refuses_is_an_error(local: Local, environment: dict[str, str]) -> None:
    local.status = 500
    with pytest.raises(CredentialsError, match="answered 500, expected 200"):
        CredentialSource(environment).get(NOW)


@pytest.mark.parametrize("url", ["http://example.com/credentials", "ftp://localhost/credentials"])
def test_the_token_goes_to_no_other_machine_without_tls(url: str) -> None:
    with pytest.raises(CredentialsError, match="expected https:// or a local address"):
        CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}).get(NOW)


def test_without_any_the_error_says_where_they_were_looked_for() -> None:
    with pytest.raises(CredentialsError, match="neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor"):
        CredentialSource({}).get(NOW)
