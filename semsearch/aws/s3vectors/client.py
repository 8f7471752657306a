"""Query an index in Amazon S3 Vectors for the vectors closest to an embedding, and read vectors by their keys.

There are two kinds of requests, QueryVectors and GetVectors, over connections that stay open. Sources:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_S3VectorBuckets_QueryVectors.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_S3VectorBuckets_GetVectors.html
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPResponse
from typing import Any, TypeVar

import numpy as np

from semsearch.aws.requests import CredentialsError, Service
from semsearch.aws.s3vectors.vectors import ID_KEY, METADATA_KEY, TEXT_KEY, key_of, row_of
from semsearch.engine.bundle import VectorsInfo
from semsearch.engine.hits import DECIMALS
from semsearch.engine.passages import Passage
from semsearch.engine.quantization import Embeddings
from semsearch.search.query import BackendError

# maximum time between two bytes of a response; Amazon states less than one second for a cold query
RESPONSE_SECONDS = 10.0
SERVICE_RETRY_AFTER = 1  # seconds to wait after the service has refused too many requests
QUERY, GET = "/QueryVectors", "/GetVectors"
MOST_KEYS = 100  # keys of one GetVectors
CONCURRENT_REQUESTS = 4  # concurrent GetVectors of one search
LONGEST_SHOWN = 300  # maximum characters of the service's message in an error

ServiceFilter = dict[str, Any]  # a filter of the service
Page = list[tuple[int, float, Passage | None]]  # rows, their scores, and their texts if they were requested
Vector = dict[str, Any]  # as the service returns it
Read = TypeVar("Read")


class VectorsClient:
    """One index of S3 Vectors. Several threads can query it at the same time."""

    def __init__(self, info: VectorsInfo, environment: Mapping[str, str] = os.environ) -> None:
        """Take the index, and the environment with AWS's own variables. The first query connects."""
        self._info = info
        address = f"https://s3vectors.{info.region}.api.aws"
        self._service = Service("s3vectors", info.region, address, RESPONSE_SECONDS, environment)

    def nearest(
        self, embedding: Embeddings, top_k: int, condition: ServiceFilter | None, *, has_texts: bool
    ) -> Iterator[Page]:
        """Yield the rows of the top_k closest vectors and their cosines, best first; each page is one request.

        embedding is (dim,) float32. With has_texts, each row has its passage. Raises BackendError.
        """
        question: dict[str, Any] = {
            "topK": top_k,
            "queryVector": {"float32": embedding.tolist()},
            "returnDistance": True,
            "returnMetadata": has_texts,
        }
        if condition:
            question["filter"] = condition
        while True:
            reply = self._request(QUERY, question)
            yield self._read(
                reply["vectors"],
                lambda vector: (
                    self._row(vector),
                    round(1 - float(vector["distance"]), DECIMALS),
                    _passage(vector["metadata"]) if has_texts else None,
                ),
            )
            if not (token := reply.get("nextToken")):
                return
            question["nextToken"] = token

    def embeddings(self, rows: Sequence[int]) -> Embeddings:
        """Return the vectors of some rows, (n, dim) float32. Raises BackendError."""
        parts = [rows[begin : begin + MOST_KEYS] for begin in range(0, len(rows), MOST_KEYS)]
        if len(parts) == 1:
            return self._embeddings(rows)
        with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
            return np.concatenate(list(pool.map(self._embeddings, parts)))

    def _embeddings(self, rows: Sequence[int]) -> Embeddings:
        keys = [key_of(self._info.keys, row) for row in rows]
        vectors = self._request(GET, {"keys": keys, "returnData": True})["vectors"]
        found = dict(self._read(vectors, lambda vector: (self._row(vector), vector["data"]["float32"])))
        missing = [row for row in rows if row not in found]
        if missing:
            raise BackendError(f"{self._where}: has no vector of row {missing[0]}; publish the bundle again")
        return np.array([found[row] for row in rows], np.float32)

    def _read(self, vectors: list[Vector], read: Callable[[Vector], Read]) -> list[Read]:
        """Return what `read` returns for each vector. Raises BackendError if that finds something else."""
        try:
            return [read(vector) for vector in vectors]
        except (KeyError, TypeError, ValueError) as error:
            where = f"{self._where}: returned a vector that `semsearch publish` did not write"
            raise BackendError(f"{where} ({error!r}); publish the bundle to an index of its own") from error

    def _row(self, vector: Vector) -> int:
        return row_of(self._info.keys, vector["key"])

    @property
    def _where(self) -> str:
        return f"S3 Vectors {self._info.bucket}/{self._info.index}"

    def _request(self, target: str, question: dict[str, Any]) -> dict[str, Any]:
        where = {"vectorBucketName": self._info.bucket, "indexName": self._info.index}
        body = json.dumps(where | question).encode()
        try:
            response, content = self._send(target, body)
        except CredentialsError as error:
            raise BackendError(f"{self._where}: {error}") from error
        except (OSError, HTTPException) as error:
            reason = f"{type(error).__name__}: {error}"
            host = self._service.endpoint.host
            raise BackendError(f"{self._where}: {host} cannot be reached ({reason}); try again") from error
        said = content[:LONGEST_SHOWN].decode(errors="replace")
        if response.status != 200:
            said = f"{response.status} {response.getheader('x-amzn-errortype', '')}: {said}"
            if response.status in (429, 503):
                raise BackendError(f"{self._where}: {said}; try again in {SERVICE_RETRY_AFTER} s", SERVICE_RETRY_AFTER)
            allow = "allow s3vectors:QueryVectors and s3vectors:GetVectors on the index"
            advice = "publish the bundle again, or set the region of the index"
            if response.status == 403:
                advice = allow
            raise BackendError(f"{self._where}: {said}; {advice}")
        try:
            reply: dict[str, Any] = json.loads(content)
            reply["vectors"]
        except (ValueError, KeyError, TypeError):
            raise BackendError(f"{self._where}: answered with {said!r}, expected vectors") from None
        return reply

    def _send(self, target: str, body: bytes, tries: int = 2) -> tuple[HTTPResponse, bytes]:
        """Return a response and its content.

        The other side can have closed an idle connection, also while the function was frozen. Then the request is sent
        again over a new one; a query changes nothing.
        """
        try:
            with self._service.request("POST", target, {"content-type": "application/json"}, body) as response:
                return response, response.read()
        except TimeoutError:
            raise
        except (OSError, HTTPException):
            if tries == 1:
                raise
            return self._send(target, body, tries - 1)


def _passage(stored: dict[str, str]) -> Passage:
    return Passage(stored[ID_KEY], stored[TEXT_KEY], json.loads(stored.get(METADATA_KEY, "{}")))
