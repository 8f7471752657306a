"""Sign requests to AWS: Signature Version 4."""

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
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: Credentials,
    region: str,
    service: str,
    now: datetime,
) -> dict[str, str]:
    """Return the headers of a signed request: the given ones, and those of the signature.

    host is the same as in the URL, with the port if it is not the usual one. path is percent-encoded, as it is sent; a
    query after it has a value for each name. now has a time zone. All given headers are signed: names in lower case,
    values without blanks at their ends or repeated blanks. Left out: signed chunks.
    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """
    digest = hashlib.sha256(body).hexdigest()
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    signed = {**headers, "host": host, "x-amz-date": time, "x-amz-content-sha256": digest}
    if credentials.token is not None:
        signed["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signed))
    path, _, query = path.partition("?")
    query = "&".join(sorted(query.split("&"), key=lambda field: field.split("=")))
    # S3 signs the path as it is sent; other services encode it once more
    if service != "s3":
        path = quote(path, safe=f"/{UNRESERVED}")
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = "\n".join([method, path or "/", query, lines, names, digest])
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    authorization = (
        f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return signed | {"authorization": authorization}
