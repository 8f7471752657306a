"""The signature is the one that botocore makes."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

import hypothesis.strategies as st
import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given

from function.aws.signature import Credentials, sign

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
        ("s3vectors", "POST", "/QueryVectors", {"Content-Type": "application/json"}, b"", "a/token=="),
        ("s3vectors", "GET", "/tags/arn%3Aaws%3As3", {}, b"", None),
        ("s3", "GET", "/bucket/a%20prefix/current.json", {"If-None-Match": '"etag"'}, b"", "token"),
        ("s3", "GET", "/bucket/model.ort", {"Range": "bytes=0-8388607"}, b"", None),
        ("s3", "GET", quote("/my texts/über/a+b=c&d~e'(1)*.json", safe="/-_.~"), {}, b"", "a/session+token=="),
        ("s3", "GET", "//x/../y", {}, b"", None),
        ("s3", "GET", "/bucket?list-type=2&prefix=a%2Fb&delimiter=", {}, b"", None),
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


@given(body=st.binary(max_size=40), names=st.lists(KEY, max_size=3), value=st.text("ab c\t,;", max_size=12))
def test_so_has_any_other(body: bytes, names: list[str], value: str) -> None:
    target = "/" + "/".join(quote(name, safe="-_.~") for name in names if name.strip("./")) + "?"
    target += urlencode([(name, name) for name in names], quote_via=quote, safe="-_.~")
    target = target.rstrip("?")
    headers = {"x-custom": value}
    found = ours("s3", "PUT", target, headers, body, None)
    assert found["authorization"] == botocores("s3", "PUT", target, headers, body, None)["Authorization"]


def test_secrets_do_not_show() -> None:
    assert "wJalr" not in repr(Credentials(*SECRETS, "token"))
    assert "token" not in repr(Credentials(*SECRETS, "token"))
