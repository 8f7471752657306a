"""The credentials of AWS that a process has: from its environment, or from an address that the environment names."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from semsearch.aws.endpoint import Endpoint
from semsearch.aws.signature import Credentials

RELATIVE, FULL = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"
TOKEN, TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
CONTAINER = "http://169.254.170.2"  # precedes the path in RELATIVE
# hosts that may answer without TLS
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23")
SECONDS = 2.0  # maximum time between two bytes of an answer with credentials
EARLY = timedelta(minutes=5)  # new credentials are requested this long before the old ones expire


class CredentialsError(RuntimeError):
    """There are no credentials. The message has the variables and addresses that were tried."""


class CredentialSource:
    """The credentials of an environment, renewed before they expire. Several threads can use it.

    Lambda sets AWS_ACCESS_KEY_ID and the other keys, except with SnapStart: keys in a snapshot would expire, so a local
    address returns new ones. ECS and EKS have such addresses too. Left out: profiles and the metadata of machines.
    Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._found: tuple[Credentials, datetime] | None = None  # the latest ones, and when they expire

    def get(self, now: datetime) -> Credentials:
        """Return credentials that are valid now, a time with a time zone. Raises CredentialsError if there are none."""
        environment = self._environment
        access_key, secret_key = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
        if access_key and secret_key:
            return Credentials(access_key, secret_key, environment.get("AWS_SESSION_TOKEN") or None)
        if self._found is None or now >= self._found[1] - EARLY:
            self._found = self._request()
        return self._found[0]

    def _request(self) -> tuple[Credentials, datetime]:
        url = self._address()
        try:
            token = self._token()
            target = urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"
            with Endpoint(url, SECONDS).borrow() as connection:
                connection.request("GET", target, headers={"authorization": token} if token else {})
                response = connection.getresponse()
                content = response.read()
            if response.status != 200:
                raise CredentialsError(f"{url}: answered {response.status}, expected 200 with AWS credentials")
            found = json.loads(content)
            credentials = Credentials(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token"))
            return credentials, datetime.fromisoformat(found["Expiration"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise CredentialsError(f"{url}: returned no AWS credentials ({error!r})") from error

    def _address(self) -> str:
        """Return the URL that returns credentials.

        Raises CredentialsError if there is none, or if the token would be sent to another machine without TLS.
        """
        if relative := self._environment.get(RELATIVE):
            return f"{CONTAINER}{relative}"
        url = self._environment.get(FULL)
        if not url:
            raise CredentialsError(
                f"there are no AWS credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor {FULL} is set; "
                'in a shell, run `eval "$(aws configure export-credentials --format env)"`'
            )
        parts = urlsplit(url)
        if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOCAL_HOSTS):
            raise CredentialsError(f"{FULL}: found {url!r}, expected https:// or a local address with http://")
        return url

    def _token(self) -> str | None:
        if file := self._environment.get(TOKEN_FILE):  # the file changes while the process runs
            return Path(file).read_text(encoding="ascii").strip()
        return self._environment.get(TOKEN)
