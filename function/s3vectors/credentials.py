"""AWS credentials of this process: those of the environment, or those that Lambda gives a restored function.

Lambda sets AWS_ACCESS_KEY_ID and its companions, except with SnapStart: there a local address answers with credentials,
since those of a snapshot would have expired
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html).
Left out: profiles and the metadata of servers. `aws configure export-credentials --format env` prints them for a shell.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from function.aws_signature import Credentials

LOCAL_URL, LOCAL_TOKEN = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN"
LOCAL_HOSTS = ("127.0.0.1", "localhost", "169.254.170.2", "169.254.170.23")  # which may be asked without TLS
SECONDS = 2.0  # that the local address may take
EARLY = timedelta(minutes=5)  # before they expire, credentials are asked for again

_remembered: dict[str, tuple[Credentials, datetime]] = {}  # by the local address: credentials and when they expire


class CredentialsError(RuntimeError):
    """There are no credentials: the message says where they were looked for."""


def find_credentials(environment: Mapping[str, str], now: datetime | None = None) -> Credentials:
    """Return the credentials of an environment. Raises CredentialsError if it has none."""
    access_key, secret_key = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if access_key and secret_key:
        return Credentials(access_key, secret_key, environment.get("AWS_SESSION_TOKEN") or None)
    url = environment.get(LOCAL_URL)
    if not url:
        raise CredentialsError(
            f"there are no AWS credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor {LOCAL_URL} is "
            'set; in a shell, run `eval "$(aws configure export-credentials --format env)"`'
        )
    now = now or datetime.now(UTC)
    credentials, expires = _remembered.get(url, (None, now))
    if credentials is None or now >= expires - EARLY:
        credentials, expires = _ask(url, environment.get(LOCAL_TOKEN))
        _remembered[url] = credentials, expires
    return credentials


def _ask(url: str, token: str | None) -> tuple[Credentials, datetime]:
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in LOCAL_HOSTS:
        raise CredentialsError(f"{LOCAL_URL}: found {url!r}, expected a local address that starts with http://")
    connection = HTTPConnection(parts.netloc, timeout=SECONDS)
    try:
        connection.request("GET", parts.path or "/", headers={"authorization": token} if token else {})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise CredentialsError(f"{LOCAL_URL}: {url} answered {response.status}, expected 200 with credentials")
        found = json.loads(content)
        expires = datetime.fromisoformat(found["Expiration"])
        return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token")), expires
    except (OSError, HTTPException, ValueError, KeyError) as error:
        raise CredentialsError(f"{LOCAL_URL}: {url} gave no credentials ({error!r})") from error
    finally:
        connection.close()
