"""Signed requests to AWS.

boto3 takes longer to import than everything else in a cold start.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPResponse

from semsearch.aws.credentials import CredentialSource
from semsearch.aws.endpoint import Endpoint, named_endpoint
from semsearch.aws.signature import sign


class Service:
    """Signed requests to a service of AWS, such as "s3", in a region. Several threads can use it."""

    def __init__(self, name: str, region: str, url: str, timeout: float, environment: Mapping[str, str]) -> None:
        """Take the service's URL, which the environment can replace; it has the credentials too."""
        self._name, self._region = name, region
        self._credentials = CredentialSource(environment)
        self.endpoint: Endpoint = Endpoint(named_endpoint(environment, name) or url, timeout)

    @contextmanager
    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Iterator[HTTPResponse]:
        """Yield the response to a request. The percent-encoded path is below the path of the service's URL.

        Raises CredentialsError, OSError or HTTPException.
        """
        now, path = datetime.now(UTC), self.endpoint.path + path
        credentials = self._credentials.get(now)
        signed = sign(method, self.endpoint.host, path, headers, body, credentials, self._region, self._name, now)
        with self.endpoint.borrow() as connection:
            connection.request(method, path, body or None, signed)
            with self.endpoint.reply_of(connection) as reply:
                yield reply
