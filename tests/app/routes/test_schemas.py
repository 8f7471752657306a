"""The schemas that are written into FastAPI's OpenAPI document: filters, columns and errors, each in whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.app.app import App
from semsearch.app.routes.schemas import DESCRIPTION, SCHEMAS, describe_columns, filter_schemas
from semsearch.app.settings import Settings
from semsearch.search.request import SimilarRequest

NUMBER: dict[str, Any] = {"type": "number"}
STRING: dict[str, Any] = {"type": "string", "maxLength": 65_536}
FILTER = {"$ref": f"{SCHEMAS}Filter"}
WEIGHT = {"type": "number", "minimum": 0, "maximum": 1_000}


def closed(properties: dict[str, Any], **others: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False} | others


def operators(value: dict[str, Any], **others: object) -> dict[str, Any]:
    several = {"type": "array", "items": value}
    compared = dict.fromkeys(("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), value)
    named = compared | {"$in": several, "$nin": several, "$exists": {"type": "boolean"}} | others
    return closed(named, minProperties=1)


def boost(name: str, operand: dict[str, Any]) -> dict[str, Any]:
    return closed({name: operand, "weight": WEIGHT}, required=[name, "weight"])


def test_a_filter_has_the_columns_and_the_operators_of_their_types() -> None:
    filters = {"type": "array", "minItems": 1, "items": FILTER}
    columns = {
        "id": {"anyOf": [STRING, {"$ref": f"{SCHEMAS}StringOperators"}]},
        "price": {"anyOf": [NUMBER, {"$ref": f"{SCHEMAS}NumberOperators"}]},
    }
    assert filter_schemas({"id": "string", "price": "number"}) == {
        "Filter": closed({**columns, "$and": filters, "$or": filters, "$not": FILTER}, description=DESCRIPTION),
        "NumberOperators": operators(NUMBER),
        "StringOperators": operators(STRING, **{"$startsWith": STRING}),
    }


OF_ID = {"id": boost("equals", STRING)}
FORMS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"group_by": None, "sort": None, "boost": closed(OF_ID), "facets": None}),
    (
        {"price": "number", "tags": "list"},
        {
            "group_by": None,
            "sort": closed({"price": {"type": "string", "enum": ["asc", "desc"]}}, minProperties=1, maxProperties=10),
            "boost": closed(
                OF_ID
                | {
                    "price": {"anyOf": [boost("equals", NUMBER), boost("log", {"type": "boolean", "const": True})]},
                    "tags": boost("equals", STRING),
                }
            ),
            "facets": ["price", "tags"],
        },
    ),
    (
        {"who": "string"},
        {
            "group_by": {"type": "string", "enum": ["who"]},
            "sort": closed({"who": {"type": "string", "enum": ["asc", "desc"]}}, minProperties=1, maxProperties=10),
            "boost": closed(OF_ID | {"who": boost("equals", STRING)}),
            "facets": ["who"],
        },
    ),
]


@pytest.mark.parametrize(("columns", "expected"), FORMS, ids=["no columns", "no strings", "a string"])
def test_fields_name_the_columns_that_they_can_have(columns: dict[str, str], expected: dict[str, Any]) -> None:
    properties = SimilarRequest.model_json_schema()["properties"]
    describe_columns(properties, {"id": "string", **columns})
    found = {name: properties[name] for name in ("filter", "group_by", "sort", "boost", "facets")}
    for field in found.values():
        del field["description"], field["title"], field["default"]
    null = {"type": "null"}
    facets = {"type": "array", "maxItems": 0, "items": {"type": "string", "maxLength": 200, "minLength": 1}}
    if expected["facets"]:
        facets = {"type": "array", "maxItems": 10, "items": {"type": "string", "enum": expected["facets"]}}
    assert found == {"filter": {"anyOf": [FILTER, null]}, "facets": facets} | {
        name: null if expected[name] is None else {"anyOf": [expected[name], null]}
        for name in ("group_by", "sort", "boost")
    }


def test_each_error_has_the_form_that_the_clients_of_its_path_read(make_app: Callable[..., App]) -> None:
    forms = {"/v1/": "OpenAIErrorReply", "/v1/rerank": "JinaErrorReply", "/v2/rerank": "CohereErrorReply"}
    statuses = set[tuple[str, str]]()
    for path, methods in make_app().fastapi.openapi()["paths"].items():
        form = next((forms[start] for start in sorted(forms, reverse=True) if path.startswith(start)), "ErrorReply")
        for method, operation in methods.items():
            for status, reply in operation["responses"].items():
                if status < "400" or (path == "/mcp" and status in ("400", "404")):
                    continue
                statuses.add((path, status))
                content = {"application/json": {"schema": {"$ref": f"{SCHEMAS}{form}"}}}
                assert (reply["content"], method, path, status) == (content, method, path, status)
                assert reply["description"] != "Validation Error"
    assert {("/similar", "400"), ("/v1/embeddings", "400"), ("/health", "503"), ("/passages/{id}", "422")} <= statuses
    assert ("/v1/models/{name}", "422") not in statuses  # it is a 400


ALWAYS = {"200", "413", "500"}
READ = ALWAYS | {"400", "415", "429"}  # with a body
STATUSES = {
    "get /": ALWAYS | {"304"},
    "post /similar": READ | {"404", "422", "502"},
    "post /predict": READ | {"422"},
    "post /v1/embeddings": READ,
    "post /rerank": READ | {"422", "424"},
    "post /v1/rerank": READ | {"422", "424"},
    "post /v2/rerank": READ | {"422", "424"},
    "post /mcp": ALWAYS | {"202", "400", "403", "404"},
    "get /health": ALWAYS | {"503"},
    "get /v1/models/{name}": ALWAYS | {"400", "404"},
    "get /passages/{id}": ALWAYS | {"404", "422"},
}


def test_each_status_of_a_route_is_described(make_app: Callable[..., App], rerank_bundle: Path) -> None:
    paths = make_app(bundle=rerank_bundle).fastapi.openapi()["paths"]
    for operation, statuses in STATUSES.items():
        method, path = operation.split()
        assert (operation, paths[path][method]["responses"].keys()) == (operation, statuses)


def test_a_text_can_be_compared_although_only_one_is_allowed(connect: Callable[..., httpx.Client]) -> None:
    schemas = connect(settings=Settings(max_texts=1)).get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Sentences"]["properties"]["sentences"]["maxItems"] == 1
