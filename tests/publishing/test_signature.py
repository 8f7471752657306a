"""The signature, compared with that of botocore."""

from datetime import UTC, datetime

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as TheirCredentials

from function.remote.signature import Credentials, quote_path, sign

HOST = "bucket.s3.eu-central-1.amazonaws.com"


@pytest.mark.parametrize("token", ["", "a/session+token=="])
@pytest.mark.parametrize("headers", [{}, {"range": "bytes=0-8388607"}, {"if-none-match": '"5d41402abc4b2a76"'}])
@pytest.mark.parametrize("path", ["/current.json", "/my texts/über/a+b=c&d~e'(1)*.json", "//x/../y"])
def test_the_signature_is_that_of_botocore(path: str, headers: dict[str, str], token: str) -> None:
    quoted = quote_path(path)
    request = AWSRequest("GET", f"https://{HOST}{quoted}", headers=dict(headers))
    S3SigV4Auth(TheirCredentials("AKID", "secret/+", token or None), "s3", "eu-central-1").add_auth(request)
    when = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    ours = sign(HOST, quoted, headers, Credentials("AKID", "secret/+", token), "eu-central-1", when)
    assert ours["authorization"] == request.headers["Authorization"]
