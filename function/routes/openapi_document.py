"""The OpenAPI document, made when it is first asked for: FastAPI's, this corpus's filters, and HEAD wherever GET is."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from function.routes.filtering import describe_columns, filter_schemas
from function.routes.similar_reply import SimilarReply


def _form(name: str, kind: dict[str, Any], *absent: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: kind} | {other: {"type": "null"} for other in absent}}


RERANK_PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")
LISTS = ("text", "id", "group_by", "min_score", "rerank")  # fields that a list of texts, without a search, cannot have
TOGETHER = {  # which fields of SimilarRequest go together
    "anyOf": [
        _form("text", {"type": "string"}, "id"),
        _form("id", {"type": "string"}, "text"),
        _form("filter", {"type": "object"}, *LISTS),
        _form("sort", {"type": "object"}, *LISTS),
        _form("facets", {"minItems": 1}, *LISTS),
    ],
    "not": {
        "required": ["sort"],
        "properties": {"sort": {"type": "object"}},
        "anyOf": [_form("group_by", {"type": "string"}), _form("rerank", {"type": "object"})],
    },
}


def describe_app(app: FastAPI, kinds: Mapping[str, str], *, has_reranker: bool) -> dict[str, Any]:
    """Return the document over a corpus with columns of these types; without a reranker, its routes are left out."""
    document = FastAPI.openapi(app)  # FastAPI makes it once and keeps it; the next bundle can have a reranker
    paths = document["paths"].items()
    document = document | {
        "paths": {path: methods for path, methods in paths if has_reranker or path not in RERANK_PATHS}
    }
    schemas = document["components"]["schemas"]
    schemas |= filter_schemas(kinds)
    reply = SimilarReply.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= reply.pop("$defs") | {"SimilarReply": reply}
    content = document["paths"]["/similar"]["post"]["responses"]["200"]["content"]
    content["application/json"]["schema"] = {"$ref": "#/components/schemas/SimilarReply"}
    properties = schemas["SimilarRequest"]["properties"]
    describe_columns(properties, kinds)
    options = [{"$ref": "#/components/schemas/RerankOptions"}] if has_reranker else []
    properties["rerank"]["anyOf"] = [*options, {"type": "null"}]
    schemas["SimilarRequest"] |= TOGETHER
    for methods in document["paths"].values():
        if "get" in methods:
            methods.setdefault("head", _without_bodies(methods["get"]))
    return document


def _without_bodies(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the description of HEAD: that of GET, whose replies have no body."""
    responses = {status: {"description": reply["description"]} for status, reply in operation["responses"].items()}
    name = operation["operationId"].removesuffix("_get") + "_head"
    return operation | {"operationId": name, "responses": responses}
