"""A function or server that `Search` asks over kept connections."""

import json
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from time import sleep
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import numpy as np

from semsearch.aws.credentials import LOCAL_HOSTS, CredentialSource
from semsearch.aws.endpoint import Endpoint
from semsearch.aws.signature import sign
from semsearch.client.frames import TYPES_WITH_DTYPE, ColumnTypes, types_of
from semsearch.client.requests import Body, Contents, Role, ServerError, as_written
from semsearch.engine.hits import MOST_HITS
from semsearch.engine.passages import PassageColumns
from semsearch.engine.quantization import Embeddings
from semsearch.search.query import MOST_COLUMNS, MOST_OFFSET

PROXY_PORT = 80  # default port, for a proxy whose address names none
ASKED = 4  # times that a request is sent to a server that is overloaded
BUSY = (429, 503)
FIRST_PAUSE = 0.25  # seconds before the second try if the server names none; doubled before each further one
LONGEST_WAIT = 30.0  # maximum seconds that a server can let the client wait before the next try
AT_ONCE_TO_SERVER = 8  # requests of `search_many` at the same time
ARGUMENT_STATUSES = (404, 413, 422)  # statuses of replies that name the argument that cannot be used
TOO_LARGE_STATUS = 413
REFUSED_STATUSES = (401, 403)
LONGEST_REASON = 200  # maximum characters of a reply that an error shows
MOST_READ = MOST_OFFSET + MOST_HITS  # texts that pages reach
BODY_BYTES = 100  # bytes of a body of /predict besides its texts, at most


class _TooLargeError(ValueError):
    """A request that the server finds too large."""


class _Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    content: bytes

    @property
    def json(self) -> Body | None:
        """The object of JSON in the body, None if it is something else."""
        try:
            found = json.loads(self.content)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


class RemoteServer:
    """A function or server at an address. Several threads can use it."""

    def __init__(self, url: str, key: str | None, region: str | None, timeout: float) -> None:
        """Take a URL that begins with http:// or https://. The first request connects."""
        self._url = url.rstrip("/")
        self._key, self._region = key, region
        self._timeout = timeout
        self._endpoint = EndpointBehindProxy(self._url, timeout)
        self._credentials = CredentialSource(os.environ)
        self._service = "execute-api"
        if ".lambda-url." in self._endpoint.host:
            self._service = "lambda"
        self._info: Body | None = None
        self._types: ColumnTypes | None = None

    def search(self, body: Body) -> Body:
        """Return the reply of /similar. Raises ValueError for what the server cannot use, otherwise ServerError."""
        return self._ask("POST", "/similar", body, "results")

    def search_many(self, bodies: Sequence[Body]) -> list[Body]:
        """Return the reply of /similar to each body. Several requests are sent at the same time."""
        with ThreadPoolExecutor(AT_ONCE_TO_SERVER, "search") as pool:
            return list(pool.map(self.search, bodies))

    def embed(self, texts: Sequence[str], role: Role | None) -> Embeddings:
        """Return the embeddings of texts, (texts, dim) float32, in as many requests as the server's limits need."""
        if len(texts) == 1:
            return self._embed(texts, role)
        return np.concatenate([self._embed_halves(batch, role) for batch in self._batches(texts)])

    def _batches(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the texts in batches within the limits of embeddings, characters and bytes that GET /info shows."""
        limits = self.info()["limits"]
        if "embeddings" not in limits:  # there is no model, and the server says so
            return [[*texts]]
        batches: list[list[str]] = []
        characters = size = 0
        for text in texts:
            characters += len(text)
            size += len(json.dumps(text)) + 2
            is_full = characters > limits["characters"] or size > limits["body_bytes"] - BODY_BYTES
            if not batches or is_full or len(batches[-1]) == limits["embeddings"]:
                batches.append([])
                characters, size = len(text), len(json.dumps(text)) + 2
            batches[-1].append(text)
        return batches

    def _embed_halves(self, texts: Sequence[str], role: Role | None) -> Embeddings:
        """Return embeddings, (texts, dim) float32. Texts with too many tokens for a request are sent in halves."""
        try:
            return self._embed(texts, role)
        except _TooLargeError:
            if len(texts) == 1:
                raise
        half = len(texts) // 2
        return np.concatenate([self._embed_halves(part, role) for part in (texts[:half], texts[half:])])

    def _embed(self, texts: Sequence[str], role: Role | None) -> Embeddings:
        reply = self._ask("POST", "/predict", {"text": list(texts), "prompt_name": role}, "embeddings")
        return np.array(reply["embeddings"], np.float32)

    def get(self, id: str, before: int, after: int) -> Body | None:
        """Return a text by its id, with the passages around it if they are requested; None if there is no such text.

        Raises ValueError if the texts are in S3 Vectors, and if passages around a text are requested that is in no
        document.
        """
        path = f"/passages/{quote(id, safe='')}"
        if before or after:
            path += f"?after={after}&before={before}"
        try:
            return self._ask("GET", path, None, "metadata")
        except ValueError as error:
            if str(error).startswith("id: "):
                return None
            raise

    def get_many(self, ids: Sequence[str], before: int, after: int) -> list[Body | None]:
        """Return what `get` returns for each id. Several requests are sent at the same time."""
        with ThreadPoolExecutor(AT_ONCE_TO_SERVER, "get") as pool:
            return list(pool.map(lambda id: self.get(id, before, after), ids))

    def read(self) -> Iterator[PassageColumns]:
        """Yield the texts that the server lets be read, in their order, a page at a time.

        Raises ValueError behind the last of them if there are more, and if their number changes meanwhile.
        """
        listed = {"filter": {}, "boost": {}, "include": ["text", "metadata"], "num_results": MOST_HITS}
        total = None
        for offset in range(0, MOST_OFFSET + 1, MOST_HITS):
            reply = self.search(listed | {"offset": offset})
            if total not in (None, reply["total"]):
                raise ValueError(f"{self._url}: has {reply['total']} texts and had {total}; read them again")
            total = reply["total"]
            results = reply["results"]
            yield PassageColumns(
                rows=[result["index"] for result in results],
                ids=[result["id"] for result in results],
                texts=[result["text"] for result in results],
                metadata=[result["metadata"] for result in results],
            )
            if offset + MOST_HITS >= total:
                return
        expected = f"at most {MOST_READ}, which a server lets be read"
        remedy = "search with a filter for some of them, or read the bundle itself"
        raise ValueError(f"{self._url}: has {total} texts, expected {expected}; {remedy}")

    def types(self) -> ColumnTypes:
        """Return the types of the columns of the index as frames have them. The first call asks the server.

        The counts of a column show whether its numbers are whole ones: the server writes 90.0 for a column of others.
        """
        if self._types is None:
            index = self.info()["index"]
            dtypes: dict[str, str] = {}
            numeric = [name for name, kind in index["columns"].items() if kind in TYPES_WITH_DTYPE]
            if index.get("vectors") is None:  # otherwise nothing is counted there
                for begin in range(0, len(numeric), MOST_COLUMNS):
                    names = numeric[begin : begin + MOST_COLUMNS]
                    reply = self.search({"filter": {}, "facets": names, "num_results": 1, "include": []})
                    dtypes |= {name: _dtype_of(reply["facets"][name]) for name in names}
            self._types = types_of(index["columns"], index.get("untyped", ()), dtypes)
        return self._types

    def embeddings(self, ids: Sequence[str] | None) -> Embeddings:
        """Raise ValueError: a server returns no stored embeddings."""
        raise ValueError(f"{self._url}: a server does not return embeddings of its texts; read the bundle itself")

    def contents(self) -> Contents:
        """Return what the bundle there holds, without removed texts."""
        info = self.info()
        index, bundle = info["index"], info.get("bundle", {})
        rows = index["rows"] - bundle.get("removed", 0)
        has_texts = index.get("vectors") is None
        name, made = info["model"]["name"], info.get("made", "")
        return Contents(name, bundle.get("version"), rows, index["columns"], has_texts, made)

    def info(self) -> Body:
        """Return the reply of GET /info to the first request for it."""
        if self._info is None:
            self._info = self._ask("GET", "/info", None, "limits")
        return self._info

    def has_changed(self) -> bool:
        """Return False: a server switches by itself."""
        return False

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _ask(self, method: str, path: str, body: Body | None, field: str) -> Body:
        """Return the reply to a request, an object of JSON that has the field."""
        content = b"" if body is None else json.dumps(body).encode()
        reply = self._send_until_answered(method, self._endpoint.path + path, content)
        found = reply.json
        if reply.status == 200 and found is not None and field in found:
            return found
        self._refuse(reply, f"{method} {path.partition('/passages/')[1] or path}")

    def _send_until_answered(self, method: str, path: str, content: bytes) -> _Reply:
        """Send a request, up to ASKED times while the server is busy, and wait as long as its Retry-After says."""
        for number in range(1, ASKED):
            reply = self._send(method, path, content)
            pause = _pause(reply.headers.get("retry-after", ""), number)
            if reply.status not in BUSY or pause > LONGEST_WAIT:
                return reply
            sleep(pause)
        return self._send(method, path, content)

    def _send(self, method: str, path: str, content: bytes) -> _Reply:
        headers = self._headers(method, path, content)
        try:
            try:
                return self._exchange(method, path, content, headers)
            except (ConnectionResetError, BrokenPipeError):  # the server has closed an idle connection
                return self._exchange(method, path, content, headers)
        except (OSError, HTTPException) as error:
            raise ServerError(f"{self._url}: {self._why(error)}") from error

    def _exchange(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> _Reply:
        with self._endpoint.borrow() as connection:
            connection.request(method, path, content or None, headers)
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return _Reply(response.status, fields, response.read())

    def _headers(self, method: str, path: str, content: bytes) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if self._region is not None:
            now = datetime.now(UTC)
            credentials, place = self._credentials.get(now), (self._endpoint.host, path)
            headers = sign(method, *place, headers, content, credentials, self._region, self._service, now)
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        return headers

    def _why(self, error: Exception) -> str:
        """Return why a request has no answer, and what to do."""
        if isinstance(error, ConnectionRefusedError):
            return "nothing answers there; start a server with `semsearch serve BUNDLE`, or check the port"
        if isinstance(error, TimeoutError):
            return f"no answer within {self._timeout:g} seconds; pass a larger `timeout`, or look at the server's log"
        if isinstance(error, socket.gaierror):
            return f"there is no machine with the name {urlsplit(self._url).hostname!r}; check the address"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not valid ({error.verify_message}); check the address"
        if isinstance(error, ssl.SSLError):
            return "does not speak TLS; write http:// if the server has no certificate"
        return f"the connection failed ({error!r}); is a semsearch server there?"

    def _refuse(self, reply: _Reply, asked: str) -> NoReturn:
        """Raise ValueError for a reply that names an argument, otherwise ServerError."""
        status, found = reply.status, reply.json or {}
        reason = str(found.get("error") or found.get("message") or found.get("Message") or "")[:LONGEST_REASON]
        if status in ARGUMENT_STATUSES and "error" in found:
            message = as_written(str(found["error"]))
            raise _TooLargeError(message) if status == TOO_LARGE_STATUS else ValueError(message)
        if status in REFUSED_STATUSES:
            advice = "pass one of the server's API keys as `key`, or the `region` of a function that IAM protects"
        elif status in BUSY:
            advice = "it is busy; ask again later, or give it more memory or more workers"
        elif 300 <= status < 400:
            advice = (
                f"it redirects to {reply.headers.get('location', 'another address')[:LONGEST_REASON]}; use that address"
            )
        elif "error_type" in found:
            advice = "look at the server's log"
        else:
            advice = "this is no semsearch server; check the address and its path"
        answered = f"answered {asked} with {status}"
        if reason:
            answered += f" ({reason})"
        raise ServerError(f"{self._url}: {answered}; {advice}", status)


class EndpointBehindProxy(Endpoint):
    """An address to which connections go through the proxy that the environment names, such as HTTPS_PROXY."""

    def _make(self) -> HTTPConnection:
        connection = super()._make()
        scheme = "http" if self._tls is None else "https"
        proxy, host = getproxies().get(scheme), connection.host
        if not proxy or host in LOCAL_HOSTS or proxy_bypass(host):
            return connection
        there = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        headers = {}
        if there.username is not None:
            user = f"{unquote(there.username)}:{unquote(there.password or '')}"
            headers["proxy-authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        connection.set_tunnel(host, connection.port, headers)
        connection.host, connection.port = str(there.hostname), there.port or PROXY_PORT
        return connection


def _dtype_of(facet: Sequence[Mapping[str, Any]]) -> str:
    """Return the dtype of a column of numbers from its facet, which has values or ranges of these."""
    numbers = [count[name] for count in facet for name in ("value", "from", "to") if name in count]
    if not numbers or any(isinstance(number, float) for number in numbers):
        return "float64"
    if max(numbers) > np.iinfo(np.int64).max and min(numbers) >= 0:
        return "uint64"
    return "int64"


def _pause(retry_after: str, number: int) -> float:
    """Return the seconds to wait after a try: those of the header Retry-After, unless it is missing or has a date."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    return float(FIRST_PAUSE * 2 ** (number - 1))
