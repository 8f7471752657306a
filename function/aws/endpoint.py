"""Where a service of AWS answers: at Amazon's address, or at one that the environment names."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from function.aws.deadline import TimedConnection


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address. Its connections share what TLS needs, which takes milliseconds to load."""

    host: str  # with the port, if it is not the usual one
    path: str  # before that of each request, without a slash at its end
    tls: ssl.SSLContext | None  # None: plain HTTP

    def connect(self) -> TimedConnection:
        """Return a connection that is made with its first request."""
        return TimedConnection(self.host, self.tls)


def named_endpoint(environment: Mapping[str, str], service: str) -> str | None:
    """Return the URL that the environment names for a service, such as "s3", by the variables of AWS's SDKs."""
    return environment.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environment.get("AWS_ENDPOINT_URL") or None


def make_endpoint(url: str) -> Endpoint:
    """Return the endpoint of a URL that begins with http:// or https://."""
    parts = urlsplit(url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return Endpoint(parts.netloc, parts.path.rstrip("/"), tls)
