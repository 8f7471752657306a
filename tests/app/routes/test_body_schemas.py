"""The direct routes read bodies by schemas without models, and accept, refuse and read the same as the models."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import SchemaValidator

from semsearch.app.routes.body_fields import BodyFields
from semsearch.app.routes.body_models import BODY_MODELS
from semsearch.app.routes.body_schemas import BODY_SCHEMAS
from semsearch.search.query import Query, query_of
from tests.app.routes.test_direct import embeddings, searches

VALIDATORS = {path: SchemaValidator(schema) for path, schema in BODY_SCHEMAS.items()}
Read = tuple[str, Any]


def read_by_schema(path: str, body: bytes) -> Read:
    """Return the fields that a direct route reads, or the errors."""
    try:
        return "read", fields_of(VALIDATORS[path].validate_json(body))
    except ValidationError as error:
        return "refused", error.errors()


def read_by_model(path: str, body: bytes) -> Read:
    """Return the fields that FastAPI's model reads, or the errors."""
    try:
        return "read", BODY_MODELS[path].model_validate_json(body).model_dump()
    except ValidationError as error:
        return "refused", error.errors()


def fields_of(value: Any) -> Any:
    """Return the fields of BodyFields as a dictionary, and any other value as it is."""
    if not isinstance(value, BodyFields):
        return value
    return {name: fields_of(each) for name, each in vars(value).items()}


bodies = st.one_of(
    st.tuples(st.just("/similar"), searches.map(lambda body: json.dumps(body).encode())),
    st.tuples(st.just("/predict"), embeddings.map(lambda body: json.dumps(body).encode())),
    st.tuples(st.sampled_from(sorted(BODY_MODELS)), st.binary(max_size=30)),
)


@given(body=bodies)
@example(("/similar", b"{}"))
@example(("/similar", b'{"text": " ", "unknown": 1, "num_results": 2.5, "min_score": "low", "include": ["x"]}'))
@example(("/similar", b'{"text": "a", "num_results": 2.0, "min_score": "floor", "rerank": {"candidates": 3.0}}'))
@example(("/similar", b'{"text": "a", "filter": {"a": {"$in": [%s]}}}' % b",".join([b"1"] * 2_000)))
@example(("/similar", b'{"vector": []}'))
@example(("/similar", b'{"vector": [1, NaN]}'))
@example(("/similar", b'{"rerank": {"candidates": 1, "unknown": 2}}'))
@example(("/similar", b'{"__dict__": {}, "__pydantic_fields_set__": 1}'))
@example(("/predict", b'{"text": []}'))
@example(("/predict", b'{"text": ["a", ""]}'))
@example(("/predict", b'{"text": ["a"], "prompt_name": "query"}'))
@settings(max_examples=max(300, settings().max_examples))
def test_a_schema_reads_the_fields_of_its_model_or_has_the_same_errors(body: tuple[str, bytes]) -> None:
    path, content = body
    assert repr(read_by_schema(path, content)) == repr(read_by_model(path, content))


def test_the_fields_of_a_body_make_a_query() -> None:
    body = b'{"text": "goose", "facets": ["who"], "without": ["snow"], "rerank": {"candidates": 3.0}, "prefix": true}'
    expected = Query("goose", facets=("who",), without=("snow",), rerank=3, prefix=True)
    assert query_of(VALIDATORS["/similar"].validate_json(body)) == expected


def test_lists_of_defaults_are_new_ones_for_each_body() -> None:
    first, second = (VALIDATORS["/similar"].validate_json(b"{}") for _ in range(2))
    first.include.append("source")
    assert second.include == ["text", "metadata"]


@pytest.mark.parametrize("path", sorted(BODY_MODELS))
def test_a_schema_has_no_class_but_that_of_fields(path: str) -> None:
    assert "pydantic" not in repr(BODY_SCHEMAS[path])
    assert type(VALIDATORS[path].validate_json(b'{"text": "a"}')) is BodyFields
