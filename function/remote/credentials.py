"""Where the credentials are: in the environment, as Lambda sets them, or at the address that a container is given.

Profiles and the addresses of virtual machines are not looked for: a server elsewhere gets its keys in the environment.
Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from function.remote.signature import Credentials

CONTAINER_HOST = "169.254.170.2"  # of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
TIMEOUT = 2.0  # seconds
BEFORE_EXPIRY = timedelta(minutes=5)
EXPECTED = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the address of a container's credentials"


class CredentialsError(Exception):
    """There are no credentials: the message says where they were looked for."""


class CredentialSource:
    """Credentials that are asked for again before they expire."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Look in this environment."""
        self._environment = environment
        self._found: Credentials | None = None
        self._until: datetime | None = None

    def get(self, now: datetime) -> Credentials:
        """Return the credentials that are good at this time. Raises CredentialsError if there are none."""
        environment = self._environment
        if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
            return Credentials(
                environment["AWS_ACCESS_KEY_ID"],
                environment["AWS_SECRET_ACCESS_KEY"],
                environment.get("AWS_SESSION_TOKEN", ""),
            )
        if self._found is None or (self._until is not None and now > self._until - BEFORE_EXPIRY):
            self._found, self._until = self._ask()
        return self._found

    def _ask(self) -> tuple[Credentials, datetime | None]:
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        environment = self._environment
        url = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
        if relative := environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            url = f"http://{CONTAINER_HOST}{relative}"
        if not url:
            raise CredentialsError(f"no AWS credentials; expected {EXPECTED}")
        parts = urlsplit(url)
        connection = (HTTPSConnection if parts.scheme == "https" else HTTPConnection)(parts.netloc, timeout=TIMEOUT)
        try:
            token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
            if file := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
                token = Path(file).read_text(encoding="ascii").strip()
            headers = {"authorization": token} if token else {}
            connection.request("GET", f"{parts.path}{'?' * bool(parts.query)}{parts.query}", headers=headers)
            reply = connection.getresponse()
            content = reply.read()
            if reply.status != 200:
                raise CredentialsError(f"{parts.netloc}: answered {reply.status} instead of AWS credentials")
            found = json.loads(content)
            expiry = found.get("Expiration")
            return (
                Credentials(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token") or ""),
                datetime.fromisoformat(expiry).astimezone(UTC) if expiry else None,
            )
        except (OSError, HTTPException, ValueError, KeyError) as error:
            raise CredentialsError(f"{url}: no AWS credentials ({error!r}); expected {EXPECTED}") from error
        finally:
            connection.close()
