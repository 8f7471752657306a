"""Requests to AWS: credentials from the environment or from its local address, and botocore's signature."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from semsearch.aws import credentials as aws
from semsearch.aws.credentials import CredentialsError, CredentialSource
from semsearch.aws.signature import Credentials, sign
from tests.stand_ins.http import Handler, listening

NOW = datetime(2026, 11, 22, 7, 8, 9, tzinfo=UTC)
SECRETS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
HOST, REGION = "example.amazonaws.com", "eu-central-1"


def botocores(service: str, method: str, target: str, headers: dict[str, str], body: bytes, token: str | None) -> Any:
    """Return the headers that botocore makes."""
    kind: Callable[..., Any] = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    request = AWSRequest(method, f"https://{HOST}{target}", headers, body)
    if service != "s3":  # which has this header always
        request.headers["x-amz-content-sha256"] = sha256(body).hexdigest()
    request.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
    signer = kind(BotocoreCredentials(*SECRETS, token), service, REGION)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None))
        signer.add_auth(request)
    return request.headers


@pytest.mark.parametrize(
    ("service", "method", "target", "headers", "body", "token"),
    [
        ("s3vectors", "POST", "/QueryVectors", {"content-type": "application/json"}, b'{"topK": 5}', None),
        ("s3vectors", "GET", "/tags/arn%3Aaws%3As3", {}, b"", None),
        ("execute-api", "GET", "/passages/a%23b?before=2&after=1&after-all=%3D", {}, b"", None),
        ("s3", "GET", "/bucket/a%20prefix/current.json", {"if-none-match": '"etag"'}, b"", "token"),
        ("s3", "GET", quote("/my texts/über/a+b=c&d~e'(1)*.json", safe="/-_.~"), {}, b"", "a/session+token=="),
        ("s3", "PUT", quote("/?/äß🦆/~", safe="/-_.~"), {}, b"\x00\xff", None),
    ],
)
def test_a_request_has_the_signature_that_botocore_makes(
    service: str, method: str, target: str, headers: dict[str, str], body: bytes, token: str | None
) -> None:
    expected = botocores(service, method, target, headers, body, token)
    found = sign(method, HOST, target, headers, body, Credentials(*SECRETS, token), REGION, service, NOW)
    assert found["authorization"] == expected["Authorization"]
    assert found["x-amz-date"] == expected["X-Amz-Date"]
    assert found.get("x-amz-security-token") == expected.get("X-Amz-Security-Token")


def test_secrets_do_not_show() -> None:
    assert "wJalr" not in repr(Credentials(*SECRETS, "token"))
    assert "token" not in repr(Credentials(*SECRETS, "token"))


KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@dataclass
class Local:
    """A server with credentials that expire an hour after `NOW`, and what it was asked with."""

    url: str = ""
    status: int = 200
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path, token


@pytest.fixture
def local() -> Iterator[Local]:
    local = Local()

    class Answer(Handler):
        def answer(self) -> None:
            local.asked.append((self.path, self.headers["authorization"]))
            reply = {"AccessKeyId": f"key-{len(local.asked)}", "SecretAccessKey": "secret", "Token": "token"}
            reply["Expiration"] = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.reply(local.status, {}, json.dumps(reply).encode())

    with listening(Answer) as local.url:
        yield local


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
    assert source.get(NOW + timedelta(minutes=55)).access_key == "key-2"


def test_a_container_has_a_path_and_a_token_file(local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws, "CONTAINER", local.url)
    (tmp_path / "token").write_text("of the file\n")
    environment = {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials?id=7",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert CredentialSource(environment).get(NOW).access_key == "key-1"
    assert local.asked == [("/v2/credentials?id=7", "of the file")]


@pytest.mark.parametrize("status", [201, 500])
def test_an_address_that_refuses_is_an_error(local: Local, environment: dict[str, str], status: int) -> None:
    local.status = status
    with pytest.raises(CredentialsError, match=f"answered {status}, expected 200"):
        CredentialSource(environment).get(NOW)


def test_an_address_can_have_no_path_and_no_token(local: Local) -> None:
    assert CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": local.url}).get(NOW).access_key == "key-1"
    assert local.asked == [("/", None)]


@pytest.mark.parametrize(
    "url",
    ["https://example.com/x", "http://127.0.0.1/x", "http://[::1]:5/x", "http://localhost/x", "http://169.254.170.23"],
)
def test_credentials_are_asked_for_over_tls_or_locally(url: str) -> None:
    assert CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url})._address() == url


def test_half_of_the_keys_or_an_empty_token_are_none(local: Local, environment: dict[str, str]) -> None:
    assert CredentialSource(KEYS | {"AWS_SESSION_TOKEN": ""}).get(NOW).token is None
    for name in KEYS:
        assert CredentialSource(environment | KEYS | {name: ""}).get(NOW).access_key.startswith("key-")


@pytest.mark.parametrize(
    "url", ["http://example.com/credentials", "ftp://localhost/credentials", "ftp://example.com/x"]
)
def test_the_token_goes_to_no_other_machine_without_tls(url: str) -> None:
    with pytest.raises(CredentialsError, match="expected https:// or a local address"):
        CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}).get(NOW)


def test_without_any_the_error_says_where_they_were_looked_for() -> None:
    with pytest.raises(CredentialsError, match="neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor"):
        CredentialSource({}).get(NOW)
