"""AWS Signature Version 4: the headers that prove who sends a request.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
Left out: signatures in the query, and signed chunks.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
UNRESERVED = "-_.~"  # characters that are not percent-encoded, besides letters and digits


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key and its secret. Temporary credentials, such as those of a function, have a token too."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key})"  # the other fields are secrets


def sign(
    method: str,
    host: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: Credentials,
    region: str,
    service: str,
    now: datetime,
) -> dict[str, str]:
    """Return the headers of a signed request: the given ones in lower case, and those of the signature.

    host is the same as in the URL, with the port if it is not the usual one. target is the path and the query as they
    are sent: percent-encoded, with %20 for a space. now has a time zone. All given headers are signed.
    """
    path, _, query = target.partition("?")
    digest = hashlib.sha256(body).hexdigest()
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed |= {"host": host, "x-amz-date": time, "x-amz-content-sha256": digest}
    if credentials.token is not None:
        signed["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signed))
    # S3 signs the path as it is sent; other services encode it once more
    path = path if service == "s3" else quote(path, safe=f"/{UNRESERVED}")
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = "\n".join([method, path or "/", _sorted_query(query), lines, names, digest])
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    authorization = (
        f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return signed | {"authorization": authorization}


def _sorted_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join(f"{name}={value}" for name, _, value in sorted(pairs))
