"""AWS Signature Version 4 of a request to S3 that has no body.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
boto3 would sign too, but importing it takes longer than the rest of a cold start.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What signs requests. The token is that of temporary credentials, "" for others."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""


def quote_path(path: str) -> str:
    """Return the path of a URL as S3 reads it in a request and in its signature: each byte quoted once."""
    return quote(path, safe="/-._~")


def sign(
    host: str, path: str, headers: Mapping[str, str], credentials: Credentials, region: str, now: datetime
) -> dict[str, str]:
    """Return all headers of a GET, those of the signature too; `now` is in UTC and `path` quoted by `quote_path`."""
    time = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    signed = {name.lower(): value for name, value in headers.items()}
    signed |= {"host": host, "x-amz-date": time, "x-amz-content-sha256": EMPTY_SHA256}
    if credentials.session_token:
        signed["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
    request = f"GET\n{path}\n\n{lines}\n{names}\n{EMPTY_SHA256}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"{ALGORITHM}\n{time}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    owner = f"Credential={credentials.access_key_id}/{scope}"
    return signed | {"authorization": f"{ALGORITHM} {owner}, SignedHeaders={names}, Signature={signature}"}
