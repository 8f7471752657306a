"""A server that stands in for Amazon S3 Vectors: moto's, and QueryVectors, which moto has not, by brute force.

The filters have the semantics of
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-metadata-filtering.html. Where that page leaves room,
this server is as strict as the page allows: `$ne` and `$nin` do not keep vectors without the key, `$ne` keeps an array
with another element, `$startsWith` takes no empty string, comparing anything but numbers is an error, and numbers are
float64.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.s3vectors import responses, urls
from moto.s3vectors.exceptions import ValidationError
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
PAGE = 7  # vectors of one reply of QueryVectors, so that tests see several pages
LISTED = 50  # the same of ListVectors
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Busy(ServiceException):  # type: ignore[misc] # moto carries no types
    code = "TooManyRequestsException"


class StandIn(responses.S3VectorsResponse):  # type: ignore[misc] # moto carries no types
    """moto's answers, with QueryVectors, with pages, and with the metadata configuration that moto forgets."""

    put_calls: list[int] = []  # noqa: RUF012  how many vectors each PutVectors had
    busy = 0  # PutVectors and QueryVectors that are still refused with 429
    queries: list[dict[str, Any]] = []  # noqa: RUF012

    def create_index(self) -> ActionResult:
        result = super().create_index()
        self._index().metadata_configuration = self._get_param("metadataConfiguration")
        return result

    def get_index(self) -> ActionResult:
        index = self._index()
        return ActionResult(
            {
                "index": {
                    "vectorBucketName": index.vectorBucketName,
                    "indexName": index.index_name,
                    "indexArn": index.index_arn,
                    "creationTime": 0,
                    "dataType": index.data_type,
                    "dimension": index.dimension,
                    "distanceMetric": index.distance_metric,
                    "metadataConfiguration": getattr(index, "metadata_configuration", None) or {},
                }
            }
        )

    def list_vectors(self) -> ActionResult:
        begin = int(self._get_param("nextToken") or 0)
        keys = list(self._index().vectors)
        token = str(begin + LISTED) if len(keys) > begin + LISTED else None
        return ActionResult({"vectors": [{"key": key} for key in keys[begin : begin + LISTED]], "nextToken": token})

    def put_vectors(self) -> ActionResult:
        self._refuse_if_busy()
        vectors = self._get_param("vectors")
        if len(vectors) > 500:
            raise ValidationError("at most 500 vectors")
        StandIn.put_calls.append(len(vectors))
        super().put_vectors()
        return EmptyResult()

    def query_vectors(self) -> ActionResult:
        self._refuse_if_busy()
        index, condition = self._index(), self._get_param("filter")
        if condition is not None and _constraints(condition) > 100:
            raise ValidationError("Invalid filter: at most 100 constraints")
        question = {"filter": condition, "topK": self._get_param("topK")}
        StandIn.queries.append(question)
        hidden = set((index.metadata_configuration or {}).get("nonFilterableMetadataKeys", []))
        query = np.array(self._get_param("queryVector")["float32"], np.float64)
        if len(query) != index.dimension:
            raise ValidationError(f"Query vector must have {index.dimension} dimensions")
        found = []
        for vector in index.vectors.values():
            metadata = {key: value for key, value in vector.metadata.items() if key not in hidden}
            if condition is None or passes(metadata, condition):
                cosine = _unit(vector) @ query / np.linalg.norm(query)
                found.append({"key": vector.key, "distance": float(1 - cosine), "metadata": vector.metadata})
        found = sorted(found, key=lambda each: each["distance"])[: question["topK"]]
        if not self._get_param("returnMetadata"):
            found = [{"key": each["key"], "distance": each["distance"]} for each in found]
        begin = int(self._get_param("nextToken") or 0)
        end = begin + PAGE
        token = str(end) if len(found) > end else None
        return ActionResult({"vectors": found[begin:end], "distanceMetric": "cosine", "nextToken": token})

    def _index(self) -> Any:
        name, bucket = self._get_param("indexName"), self._get_param("vectorBucketName")
        return self.s3vectors_backend.get_index(bucket, name, "")

    def _refuse_if_busy(self) -> None:
        if StandIn.busy:
            StandIn.busy -= 1
            raise Busy("Too many requests")


def _unit(vector: Any) -> Any:
    """Return a vector with length 1, which is computed once."""
    if not hasattr(vector, "unit"):
        data = np.array(vector.data["float32"], np.float32).astype(np.float64)
        vector.unit = data / np.linalg.norm(data)
    return vector.unit


def _constraints(condition: dict[str, Any]) -> int:
    """Return how many values a filter compares."""
    count = 0
    for name, value in condition.items():
        if name in ("$and", "$or"):
            count += sum(map(_constraints, value))
        else:
            operands = value.values() if isinstance(value, dict) else [value]
            count += sum(len(operand) if isinstance(operand, list) else 1 for operand in operands)
    return count


def passes(metadata: dict[str, Any], condition: dict[str, Any]) -> bool:
    """Return whether a vector's filterable metadata pass a filter."""
    if not isinstance(condition, dict) or not condition:
        raise ValidationError("Invalid filter: expected an object that is not empty")
    return all(_member(metadata, name, value) for name, value in condition.items())


def _member(metadata: dict[str, Any], name: str, value: Any) -> bool:
    if name in ("$and", "$or"):
        if not isinstance(value, list) or not value:
            raise ValidationError(f"Invalid filter: {name} expects a list that is not empty")
        return (all if name == "$and" else any)([passes(metadata, each) for each in value])
    operators = value if isinstance(value, dict) else {"$eq": value}
    return all(_operator(metadata.get(name), operator, operand) for operator, operand in operators.items())


def _operator(found: Any, operator: str, operand: Any) -> bool:
    values = found if isinstance(found, list) else [] if found is None else [found]
    if operator == "$exists":
        return (found is not None) is operand
    if operator in COMPARISONS:
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise ValidationError(f"Invalid filter: {operator} expects a number")
        compared = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        return any(COMPARISONS[operator](float(each), float(operand)) for each in compared)
    if operator in ("$in", "$nin"):
        if not isinstance(operand, list) or not operand:
            raise ValidationError(f"Invalid filter: {operator} expects a list that is not empty")
        is_in = any(_are_equal(each, one) for each in values for one in operand)
        return is_in if operator == "$in" else bool(values) and not is_in
    if operator == "$eq":
        return any(_are_equal(each, operand) for each in values)
    if operator == "$startsWith":
        if not isinstance(operand, str) or not operand:
            raise ValidationError("Invalid filter: $startsWith expects a string that is not empty")
        return any(isinstance(each, str) and each.startswith(operand) for each in values)
    if operator == "$ne":
        return any(not _are_equal(each, operand) for each in values)
    raise ValidationError(f"Invalid filter: no operator {operator}")


def _are_equal(one: object, other: object) -> bool:
    if isinstance(one, list | dict) or isinstance(other, list | dict):
        raise ValidationError("Invalid filter: expected a string, a number or a boolean")
    if isinstance(one, bool) == isinstance(other, bool) and isinstance(one, int) and isinstance(other, int):
        return float(one) == float(other)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


@contextmanager
def s3vectors_server() -> Iterator[str]:
    """Yield the address of a server with no bucket."""
    former = dict(urls.url_paths)
    urls.url_paths.update(dict.fromkeys((*former, "{0}/QueryVectors$"), StandIn.dispatch))
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        urls.url_paths.clear()
        urls.url_paths.update(former)
