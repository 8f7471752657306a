"""Query an index in Amazon S3 Vectors for the vectors closest to an embedding, and read vectors by their keys.

There are two kinds of requests, QueryVectors and GetVectors, over connections that stay open. Sources:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_S3VectorBuckets_QueryVectors.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_S3VectorBuckets_GetVectors.html
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, TypeVar

import numpy as np

from function.aws.connections import Connections, Endpoint, named_endpoint
from function.aws.credentials import CredentialsError, CredentialSource
from function.aws.signature import sign
from function.engine.bundle import VectorsInfo
from function.engine.quantization import Embeddings
from function.engine.semantic.index import DECIMALS
from function.engine.semantic.s3_vectors import ID, METADATA, TEXT, key_of, row_of

SERVICE = "s3vectors"
SECONDS = 10.0  # maximum time between two bytes of a response; Amazon states less than one second for a cold query
RETRY_AFTER = 1  # seconds to wait after the service has refused too many requests
QUERY, GET = "/QueryVectors", "/GetVectors"
MOST_KEYS = 100  # keys of one GetVectors
AT_ONCE = 4  # concurrent GetVectors of one search
LONGEST_SHOWN = 300  # maximum characters of the service's message in an error

Hit = dict[str, Any]
Vector = dict[str, Any]  # as the service returns it
Read = TypeVar("Read")


class VectorsError(RuntimeError):
    """S3 Vectors did not answer as expected. After too many requests, `seconds` is the time to wait."""

    def __init__(self, message: str, seconds: int | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class VectorsClient:
    """One index of S3 Vectors. Several threads can query it at the same time."""

    def __init__(self, info: VectorsInfo, environment: Mapping[str, str] = os.environ) -> None:
        """Take the index, and the environment with AWS's own variables. The first query connects."""
        self._info = info
        self._credentials = CredentialSource(environment)
        default = f"https://{SERVICE}.{info.region}.api.aws"
        self._endpoint = Endpoint(named_endpoint(environment, SERVICE) or default, SECONDS)
        self._connections = Connections(self._endpoint)

    def query(self, embedding: Embeddings, top_k: int, condition: dict[str, Any] | None = None) -> list[Hit]:
        """Return the top_k closest vectors, best first. A hit has index (its row), id, score, text and metadata.

        embedding is (dim,) float32, and the score is the cosine to it. condition is a filter of S3 Vectors.
        Equal scores are in the order of the corpus. Raises VectorsError.
        """
        found: list[Hit] = []
        for vectors in self._pages(embedding, top_k, condition, has_metadata=True):
            found += self._read(vectors, self._hit)
            if len(found) >= top_k:
                break
        return sorted(found, key=lambda hit: (-hit["score"], hit["index"]))[:top_k]

    def nearest(
        self, embedding: Embeddings, top_k: int, condition: dict[str, Any] | None
    ) -> Iterator[list[tuple[int, float]]]:
        """Yield the rows of the top_k closest vectors and their cosines, best first; each page is one request.

        embedding is (dim,) float32. condition is a filter of S3 Vectors. Raises VectorsError.
        """
        for vectors in self._pages(embedding, top_k, condition, has_metadata=False):
            yield self._read(vectors, lambda vector: (self._row(vector), _score(vector)))

    def embeddings(self, rows: Sequence[int]) -> Embeddings:
        """Return the vectors of some rows, (n, dim) float32. Raises VectorsError."""
        parts = [rows[begin : begin + MOST_KEYS] for begin in range(0, len(rows), MOST_KEYS)]
        if len(parts) == 1:
            return self._embeddings(rows)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return np.concatenate(list(pool.map(self._embeddings, parts)))

    def _embeddings(self, rows: Sequence[int]) -> Embeddings:
        keys = [key_of(self._info.keys, row) for row in rows]
        vectors = self._request(GET, {"keys": keys, "returnData": True})["vectors"]
        found = dict(self._read(vectors, lambda vector: (self._row(vector), vector["data"]["float32"])))
        missing = [row for row in rows if row not in found]
        if missing:
            raise VectorsError(f"{self._where}: has no vector of row {missing[0]}; publish the bundle again")
        return np.array([found[row] for row in rows], np.float32)

    def _pages(
        self, embedding: Embeddings, top_k: int, condition: dict[str, Any] | None, *, has_metadata: bool
    ) -> Iterator[list[Vector]]:
        """Yield the top_k closest vectors, best first; each page is one request."""
        question: dict[str, Any] = {
            "topK": top_k,
            "queryVector": {"float32": embedding.tolist()},
            "returnDistance": True,
            "returnMetadata": has_metadata,
        }
        if condition:
            question["filter"] = condition
        while True:
            reply = self._request(QUERY, question)
            yield reply["vectors"]
            if not (token := reply.get("nextToken")):
                return
            question["nextToken"] = token

    def _read(self, vectors: list[Vector], read: Callable[[Vector], Read]) -> list[Read]:
        """Return what `read` returns for each vector. Raises VectorsError if that finds something else."""
        try:
            return [read(vector) for vector in vectors]
        except (KeyError, TypeError, ValueError) as error:
            where = f"{self._where}: returned a vector that `python -m export publish` did not write"
            raise VectorsError(f"{where} ({error!r}); publish the bundle to an index of its own") from error

    def _row(self, vector: Vector) -> int:
        return row_of(self._info.keys, vector["key"])

    @property
    def _where(self) -> str:
        return f"S3 Vectors {self._info.bucket}/{self._info.index}"

    def _hit(self, vector: Vector) -> Hit:
        stored = vector["metadata"]
        return {
            "index": self._row(vector),
            "id": stored[ID],
            "score": _score(vector),
            "text": stored[TEXT],
            "metadata": json.loads(stored[METADATA]) if METADATA in stored else {},
        }

    def _request(self, target: str, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request. Raises VectorsError."""
        where = {"vectorBucketName": self._info.bucket, "indexName": self._info.index}
        body = json.dumps(where | question).encode()
        try:
            response, content = self._send(target, body)
        except CredentialsError as error:
            raise VectorsError(f"{self._where}: {error}") from error
        except (OSError, HTTPException) as error:
            reason = f"{type(error).__name__}: {error}"
            raise VectorsError(
                f"{self._where}: {self._endpoint.host} cannot be reached ({reason}); try again"
            ) from error
        try:
            reply = json.loads(content)
            reply["vectors" if response.status == 200 else "message"]
        except (ValueError, KeyError, TypeError):
            reply = {"message": content[:LONGEST_SHOWN].decode(errors="replace")}
            if response.status == 200:
                raise VectorsError(f"{self._where}: answered with {reply['message']!r}, expected vectors") from None
        if response.status == 200:
            found: dict[str, Any] = reply
            return found
        kind = (response.getheader("x-amzn-errortype") or reply.get("__type", "")).partition(":")[0].rpartition("#")[2]
        said = f"{response.status} {kind}: {str(reply['message'])[:LONGEST_SHOWN]}"
        if response.status in (429, 503):
            raise VectorsError(f"{self._where}: {said}; try again in {RETRY_AFTER} s", RETRY_AFTER)
        raise VectorsError(f"{self._where}: {said}; {_advice(response.status)}")

    def _send(self, target: str, body: bytes) -> tuple[HTTPResponse, bytes]:
        """Return a response and its content.

        The other side can have closed an idle connection, also while the function was frozen. Then the request is sent
        again over another one; a query changes nothing.
        """
        while True:
            is_new = True
            try:
                with self._connections.borrow() as connection:
                    is_new = connection.sock is None
                    return self._send_over(connection, target, body)
            except TimeoutError:
                raise
            except (OSError, HTTPException):
                if is_new:
                    raise

    def _send_over(self, connection: HTTPConnection, target: str, body: bytes) -> tuple[HTTPResponse, bytes]:
        now = datetime.now(UTC)
        credentials, headers = self._credentials.get(now), {"content-type": "application/json"}
        target, host = self._endpoint.path + target, self._endpoint.host
        signed = sign("POST", host, target, headers, body, credentials, self._info.region, SERVICE, now)
        connection.request("POST", target, body, dict(signed))
        response = connection.getresponse()
        return response, response.read()


def _score(vector: Vector) -> float:
    return round(1 - float(vector["distance"]), DECIMALS)


def _advice(status: int) -> str:
    match status:
        case 403:
            return "allow s3vectors:QueryVectors and s3vectors:GetVectors on the index"
        case 404:
            return "publish the bundle again, or set the region and the account that have the index"
    return "publish the bundle again if this goes on"
