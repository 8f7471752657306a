"""Query an index in Amazon S3 Vectors for the vectors closest to an embedding, and their texts.

The requests are QueryVectors, over connections that stay open. Source:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_S3VectorBuckets_QueryVectors.html
"""

import json
import os
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any

from semsearch.aws.credentials import CredentialsError
from semsearch.aws.requests import Service
from semsearch.aws.s3vectors.vectors import ID_KEY, METADATA_KEY, TEXT_KEY, row_of
from semsearch.engine.bundle import VectorsInfo
from semsearch.engine.errors import BackendError
from semsearch.engine.hits import DECIMALS
from semsearch.engine.passages import Passage
from semsearch.engine.quantization import Embeddings

# maximum time between two bytes of a response; Amazon states less than one second for a cold query
RESPONSE_SECONDS = 10.0
SERVICE_RETRY_AFTER = 1  # seconds to wait after the service has refused too many requests
QUERY = "/QueryVectors"
LONGEST_SHOWN = 300  # maximum characters of the service's message in an error

ServiceFilter = dict[str, Any]  # a filter of the service
Page = list[tuple[int, float, Passage]]  # rows, their scores and their texts


class VectorsClient:
    """One index of S3 Vectors. Several threads can query it at the same time."""

    def __init__(self, info: VectorsInfo, environment: Mapping[str, str] = os.environ) -> None:
        """Take the index, and the environment with AWS's own variables. The first query connects."""
        self._info = info
        address = f"https://s3vectors.{info.region}.api.aws"
        self._service = Service("s3vectors", info.region, address, RESPONSE_SECONDS, environment)

    def nearest(self, embedding: Embeddings, top_k: int, condition: ServiceFilter | None) -> Iterator[Page]:
        """Yield the rows of the top_k closest vectors with their cosines and texts, best first; a page is one request.

        embedding is (dim,) float32. Raises BackendError.
        """
        question: dict[str, Any] = {
            "topK": top_k,
            "queryVector": {"float32": embedding.tolist()},
            "returnDistance": True,
            "returnMetadata": True,
        }
        if condition:
            question["filter"] = condition
        while True:
            reply = self._request(question)
            try:
                yield [self._read(vector) for vector in reply["vectors"]]
            except (KeyError, TypeError, ValueError) as error:
                where = f"{self._where}: returned a vector that `semsearch publish` did not write"
                raise BackendError(f"{where} ({error!r}); publish the bundle to an index of its own") from error
            if not (token := reply.get("nextToken")):
                return
            question["nextToken"] = token

    def _read(self, vector: dict[str, Any]) -> tuple[int, float, Passage]:
        """Return the row, the cosine and the text of a vector, as the service returns it."""
        stored = vector["metadata"]
        passage = Passage(stored[ID_KEY], stored[TEXT_KEY], json.loads(stored.get(METADATA_KEY, "{}")))
        return row_of(self._info.keys, vector["key"]), round(1 - float(vector["distance"]), DECIMALS), passage

    @property
    def _where(self) -> str:
        return f"S3 Vectors {self._info.bucket}/{self._info.index}"

    def _request(self, question: dict[str, Any]) -> dict[str, Any]:
        where = {"vectorBucketName": self._info.bucket, "indexName": self._info.index}
        body = json.dumps(where | question).encode()
        try:
            response, content = self._send(body)
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

    def _send(self, body: bytes, tries: int = 2) -> tuple[HTTPResponse, bytes]:
        """Return a response and its content.

        The other side can have closed an idle connection, also while the function was frozen. Then the request is sent
        again over a new one; a query changes nothing.
        """
        try:
            with self._service.request("POST", QUERY, {"content-type": "application/json"}, body) as response:
                return response, response.read()
        except TimeoutError:
            raise
        except (OSError, HTTPException):
            if tries == 1:
                raise
            return self._send(body, tries - 1)
