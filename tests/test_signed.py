"""The signed requests that docs/clients.md shows, against a server that verifies signatures as AWS documents them."""

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any

import pytest

from semsearch.app.app import App
from semsearch.app.errors import error_reply
from semsearch.app.http import ASGIApp, Receive, Scope, Send, replay
from tests.browser.page.conftest import serving
from tests.project import ROOT

SECTION = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").partition("### Signed requests")[2]
SNIPPETS = dict(zip(("Search", "botocore"), re.findall(r"^```py\n(.*?)^```$", SECTION, re.M | re.S), strict=False))
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token=="


def signature(method: str, path: str, headers: dict[str, str], body: bytes) -> str:
    """Return the `authorization` that a request must have.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/(\d{8})/eu-central-1/execute-api/aws4_request, "
        r"SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}",
        headers.get("authorization", ""),
    )
    if found is None or not {"host", "x-amz-date", "x-amz-security-token"} <= {*found[2].split(";")}:
        return "a signature"
    day, names = found.groups()
    signed = "".join(f"{name}:{headers[name]}\n" for name in names.split(";"))
    request = f"{method}\n{path}\n\n{signed}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{day}/eu-central-1/execute-api/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={key.hex()}"


def verifying(app: ASGIApp) -> ASGIApp:
    """Return an app that refuses requests as an HTTP API with AWS_IAM does."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        expected = signature(scope["method"], scope["path"], headers, message["body"])
        if headers.get("authorization") == expected and headers["x-amz-security-token"] == TOKEN:
            await app(scope, replay(message, receive), send)
        else:
            await error_reply(403, "Forbidden", scope["path"])(scope, receive, send)

    return answer


@pytest.mark.parametrize(
    ("signer", "secret"), [("Search", SECRET), ("botocore", SECRET), ("botocore", "another secret")]
)
def test_the_pages_requests_are_signed(
    make_app: Callable[..., App],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    signer: str,
    secret: str,
) -> None:
    for name, value in (("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", secret), ("SESSION_TOKEN", TOKEN)):
        monkeypatch.setenv(f"AWS_{name}", value)
    names: dict[str, Any] = {}
    with serving(verifying(make_app())) as address:
        code = SNIPPETS[signer].replace("http://localhost:8000", address)
        if secret == SECRET:
            exec(code, names)
            assert capsys.readouterr().out.startswith("story-")
        else:
            with pytest.raises(Exception, match="403"):
                exec(code, names)
        if signer == "botocore":
            names["client"].close()
