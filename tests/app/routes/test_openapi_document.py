"""The OpenAPI document tells the truth: schemathesis sends every route what it allows and what it does not.

All its checks are on: no 5xx, only documented statuses, content types and bodies, valid requests accepted and invalid
ones refused, 405 with Allow for other methods, and so on. The app is called through Lambda's events.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator

from semsearch.app.app import App
from semsearch.app.routes.schemas import STRING_SCHEMA, describe_app
from semsearch.app.settings import Settings
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from semsearch.engine.metadata.filters import OPERATORS
from tests.function.events.through_events import ThroughEvents
from tests.server.test_same_replies import by_engine
from tests.world import STORY_COLUMNS, add_floor


@pytest.fixture
def through_events(make_app: Callable[..., App], rerank_bundle: Path) -> Iterator[ThroughEvents]:
    app = ThroughEvents(make_app(bundle=rerank_bundle))
    yield app
    app.close()


@pytest.mark.slow
def test_lambda_answers_as_the_document_says(through_events: ThroughEvents) -> None:
    from tests.app.routes.conformance import check_conformance  # imports schemathesis, which takes a second

    check_conformance(through_events, examples=15)


def test_each_route_that_embeds_texts_states_their_limits(make_app: Callable[..., App], rerank_bundle: Path) -> None:
    settings = Settings(max_texts=7, max_tokens=900)
    paths = make_app(settings=settings, bundle=rerank_bundle).fastapi.openapi()["paths"]
    for path in ("/predict", "/v1/embeddings", "/embed", "/rerank"):
        described = paths[path]["post"]["description"]
        assert described.startswith("At most 7 texts of ")
        assert f"More than {settings.max_characters} characters together, or 900 tokens" in described


def test_the_document_says_which_columns_a_filter_may_name_and_what_a_result_may_leave_out(
    make_app: Callable[..., App], bundle: Path
) -> None:
    document = make_app().fastapi.openapi()
    schemas = document["components"]["schemas"]
    assert OAS31Validator({**document, "$ref": "#/components/schemas/Filter"}).is_valid({"chapter": {"$in": []}})
    assert schemas["Filter"]["properties"].keys() == STORY_COLUMNS.keys() | {"id", "$and", "$or", "$not"}
    assert schemas["Filter"]["properties"]["chapter"]["anyOf"][0] == {"type": "number"}
    assert schemas["NumberOperators"]["properties"].keys() == set(OPERATORS) - {"$startsWith"}
    assert schemas["StringOperators"]["properties"].keys() == set(OPERATORS)
    assert schemas["ListOperators"]["properties"]["$startsWith"] == STRING_SCHEMA
    assert schemas["SimilarRequest"]["properties"]["filter"]["anyOf"][0] == {"$ref": "#/components/schemas/Filter"}
    assert schemas["FacetRange"]["properties"].keys() == {"from", "to", "count"}
    dimensions = [
        each["properties"]["dimensions"] for each in schemas.values() if "dimensions" in each.get("properties", {})
    ]
    assert {each["anyOf"][0]["maximum"] for each in dimensions} == {load(bundle).manifest.model.dim}
    always = set(schemas["Result"]["required"])
    assert schemas["Result"]["properties"].keys() - always == {
        *("scores", "text", "metadata", "lines", "cells", "source", "highlights", "snippet")
    }


SEARCHES: list[dict[str, Any]] = [
    {"text": "goose", "highlights": True, "include": ["text", "metadata", "source"]},
    {"text": "the gooze", "mode": "keyword", "boost": {"chapter": {"log": True, "weight": 0.1}}},
    {"text": "the baker", "group_by": "who", "facets": ["who", "chapter", "told"]},
    {"text": "the baker", "mode": "semantic", "rerank": {"candidates": 3}},
    {"sort": {"chapter": "asc"}},
    {"id": "story-007", "exact": True},
]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_reply_has_no_field_that_the_document_lacks(
    connect: Callable[..., httpx.Client], rerank_bundle: Path, search: dict[str, Any]
) -> None:
    client = connect(bundle=rerank_bundle)
    document = client.get("/openapi.json").json()
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    reply = client.post("/similar", json=search)
    assert reply.status_code == 200, reply.text
    OAS31Validator({**document, "$ref": "#/components/schemas/SimilarReply"}).validate(reply.json())


@pytest.mark.parametrize("has_reranker", [False, True])
def test_only_a_bundle_with_a_reranker_has_its_routes_and_no_schema_is_left_that_no_route_uses(
    make_app: Callable[..., App], has_reranker: bool
) -> None:
    document = describe_app(
        make_app().fastapi,
        {"price": "number"},
        dim=1,
        has_model=True,
        has_keywords=True,
        has_reranker=has_reranker,
        floor={},
    )
    routes = {"/rerank", "/v1/rerank", "/v2/rerank"}
    assert routes & document["paths"].keys() == (routes if has_reranker else set())
    used = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert used == document["components"]["schemas"].keys()
    assert ("RerankOptions" in used) == has_reranker
    assert "StringOperators" not in used


def test_without_documents_no_passages_around_another_one_are_allowed(make_app: Callable[..., App]) -> None:
    operation = make_app().fastapi.openapi()["paths"]["/passages/{id}"]["get"]
    most = {each["name"]: each["schema"].get("maximum") for each in operation["parameters"]}
    assert (most["before"], most["after"]) == (0, 0)


@pytest.mark.parametrize(
    ("kinds", "most"),
    [
        ({"path": "string", "passage": "number"}, 10),
        ({"path": "string"}, 0),
        ({"passage": "number"}, 0),
        ({"path": "list", "passage": "number"}, 0),
    ],
)
def test_passages_around_another_one_need_paths_and_numbers(
    make_app: Callable[..., App], kinds: dict[str, str], most: int
) -> None:
    document = describe_app(
        make_app().fastapi, kinds, dim=1, has_model=True, has_keywords=True, has_reranker=False, floor={}
    )
    parameters = document["paths"]["/passages/{id}"]["get"]["parameters"]
    assert [each["schema"].get("maximum") for each in parameters if each["in"] == "query"] == [most, most]


VALUES: dict[str, list[Any]] = {  # example values of the fields that exclude or need each other
    "text": ["goose", None],
    "id": ["story-001", None],
    "filter": [{"chapter": {"$gte": 0}}, None],
    "sort": [{"chapter": "asc"}, None],
    "facets": [["who"], []],
    "group_by": ["who", None],
    "min_score": [0.1, None],
    "rerank": [{"candidates": 2}, None],
}
FLOOR_VALUES: dict[str, list[Any]] = {
    "text": ["goose", None],
    "id": ["story-001", None],
    "min_score": ["floor", "high", 0.1, None],
    "mode": ["semantic", "keyword", "hybrid", None],
    "fusion_weight": [0.5, None],
}


@pytest.mark.parametrize(
    "scores",
    [{}, {"semantic": 0.3, "keyword": None, "hybrid": 0.2}, {"semantic": None, "keyword": 1.0, "hybrid": None}],
)
def test_the_floor_is_allowed_where_the_search_allows_it(
    make_app: Callable[..., App], embedder: Embedder, bundle_copy: Path, scores: dict[str, float | None]
) -> None:
    document = make_app(bundle=add_floor(bundle_copy, scores)).fastapi.openapi()
    validator = OAS31Validator({**document, "$ref": "#/components/schemas/SimilarRequest"})
    loaded = load(bundle_copy, embedder)
    for chosen in product(*FLOOR_VALUES.values()):
        body = {name: value for name, value in zip(FLOOR_VALUES, chosen, strict=True) if value is not None}
        status, _ = by_engine(loaded, body)
        assert validator.is_valid(body) == (status == 200), body


def test_the_rules_between_fields_are_those_of_the_search_in_one_schema(
    make_app: Callable[..., App], embedder: Embedder, rerank_bundle: Path
) -> None:
    """Each of these fields is there, null or empty, or left out at random."""
    document = make_app(bundle=rerank_bundle).fastapi.openapi()
    schema = document["components"]["schemas"]["SimilarRequest"]
    assert not schema.keys() & {"anyOf", "oneOf", "allOf"}  # generators would make several classes
    validator = OAS31Validator({**document, "$ref": "#/components/schemas/SimilarRequest"})
    loaded = load(rerank_bundle, embedder)
    rng = random.Random(7)
    statuses = []
    for chosen in product(*VALUES.values()):
        fields = dict(zip(VALUES, chosen, strict=True))
        body = {name: value for name, value in fields.items() if value or rng.random() < 0.5}
        statuses.append(by_engine(loaded, body)[0])
        assert validator.is_valid(body) == (statuses[-1] == 200), body
    assert set(statuses) == {200, 422}
