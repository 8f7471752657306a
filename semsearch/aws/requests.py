"""Requests to AWS: credentials, signatures and kept connections.

boto3 takes longer to import than everything else in a cold start.
"""

import hashlib
import hmac
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

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


# A router or firewall on the way can forget an idle connection without notice, and a request over it would only wait.
SECONDS_IDLE = 20.0


def named_endpoint(environment: Mapping[str, str], service: str) -> str | None:
    """Return the URL that the environment names for a service, such as "s3", by the variables of AWS's SDKs."""
    return environment.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environment.get("AWS_ENDPOINT_URL") or None


class Endpoint:
    """The address of a service, and connections to it that stay open between requests. Several threads can use it."""

    def __init__(self, url: str, timeout: float) -> None:
        """Take a URL that begins with http:// or https://, and the maximum seconds between two bytes of an answer.

        A request connects when it needs to. Idle connections are closed with this object.
        """
        parts = urlsplit(url)
        self.host: str = parts.netloc  # with the port, if it is not the usual one
        self.path: str = parts.path.rstrip("/")  # precedes the path of each request
        self._timeout = timeout
        # the connections share a TLS context, which takes milliseconds to load
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context()
        self._idle: list[tuple[HTTPConnection, float]] = []  # since when; a list's append and pop are atomic
        self._awaited: set[socket.socket] = set()  # those whose reply has not been read yet

    @contextmanager
    def borrow(self) -> Iterator[HTTPConnection]:
        """Yield an idle connection or a new one. After an error, it and all idle ones are closed.

        The other side can have closed an idle one meanwhile. Then the same request over a new one can succeed.
        """
        connection = self._take_idle() or self._make()
        try:
            yield connection
        except BaseException:
            connection.close()
            self.close()
            raise
        self._idle.append((connection, time.time()))

    @contextmanager
    def reply_of(self, connection: HTTPConnection) -> Iterator[HTTPResponse]:
        """Yield the reply to the request that a connection has just sent. `interrupt` can break it off."""
        waiting = connection.sock
        self._awaited.add(waiting)
        try:
            yield connection.getresponse()
        finally:
            self._awaited.discard(waiting)

    def interrupt(self) -> None:
        """Let the threads that wait for a reply, or read one, get an error now."""
        for waiting in list(self._awaited):
            with suppress(OSError):  # it was closed meanwhile
                waiting.shutdown(socket.SHUT_RDWR)

    def _take_idle(self) -> HTTPConnection | None:
        with suppress(IndexError):  # none is left
            while True:
                connection, since = self._idle.pop()
                # time.time also counts the time in which a function is frozen
                if 0 <= time.time() - since <= SECONDS_IDLE:
                    return connection
                connection.close()
        return None

    def _make(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self.host, timeout=self._timeout)
        return HTTPSConnection(self.host, timeout=self._timeout, context=self._tls)

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):  # none is left
            while True:
                self._idle.pop()[0].close()

    def __del__(self) -> None:
        self.close()


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
