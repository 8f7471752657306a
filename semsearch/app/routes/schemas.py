"""The JSON schemas of filters, and the changes to FastAPI's OpenAPI document.

Generators make one class of each schema with `properties`. They ignore `not`, `if` and `then`, so rules between fields
are written with these, and not with an `anyOf` of several forms, of which they would make several classes.
"""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from semsearch.app.routes.error_replies import ErrorReply
from semsearch.app.routes.reply_types import (
    CohereErrorReply,
    CohereReply,
    EmbeddingsReply,
    HealthReply,
    InfoReply,
    InfoWithoutModelReply,
    JinaErrorReply,
    JinaReply,
    ModelReply,
    ModelsReply,
    OpenAIErrorReply,
    PredictReply,
    Rank,
)
from semsearch.app.settings import MOST_TEXTS
from semsearch.engine.bundle import FloorInfo
from semsearch.engine.metadata.boosts import BOOSTED_KINDS, HEAVIEST
from semsearch.engine.metadata.columns import COMPARED, ID, LIST_TYPES, STRING_TYPES
from semsearch.engine.metadata.filters import LONGEST_OPERAND, MOST_FILTER_VALUES, MOST_LEVELS
from semsearch.engine.tokenizer import SpelledToken
from semsearch.search.query import FLOOR
from semsearch.search.reply_types import DocumentReply, FoundPassageReply, SimilarReply
from semsearch.search.results import PASSAGE_NUMBER, PATH

SCHEMAS = "#/components/schemas/"
NULL = {"type": "null"}
STRING_SCHEMA: dict[str, Any] = {"type": "string", "maxLength": LONGEST_OPERAND}
DATE_SCHEMA = STRING_SCHEMA | {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
VALUES: dict[str, dict[str, Any]] = {  # JSON Schema of a value that is compared with a column, by the column's type
    "string": STRING_SCHEMA,
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": DATE_SCHEMA,
    "list": STRING_SCHEMA,
    "numbers": {"type": "number"},
}
DESCRIPTION = f"""\
Only texts whose metadata pass the filter are found. A value without an operator means `$eq`; all members of an object \
must hold, and `$not` keeps the texts that its filter does not keep. A list passes if one of its values passes. \
`$startsWith` compares the beginning of strings. At most {MOST_LEVELS} filters may be within each other, and a filter \
may hold {MOST_FILTER_VALUES} values, lists and objects included."""


def filter_schemas(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON Schemas of a filter over columns of these types, keyed by their names in the OpenAPI document."""
    filters = {"type": "array", "minItems": 1, "items": _reference("Filter")}
    columns = {name: {"anyOf": [VALUES[kind], _reference(_name(kind))]} for name, kind in kinds.items()}
    schemas = {
        "Filter": _object({**columns, "$and": filters, "$or": filters, "$not": _reference("Filter")})
        | {"description": DESCRIPTION}
    }
    for kind in sorted(set(kinds.values())):
        several = {"type": "array", "items": VALUES[kind]}
        operators = dict.fromkeys(("$eq", "$ne", *COMPARED), VALUES[kind]) | {"$in": several, "$nin": several}
        if kind in STRING_TYPES:
            operators["$startsWith"] = VALUES[kind]
        schemas[_name(kind)] = _object(operators | {"$exists": {"type": "boolean"}}) | {"minProperties": 1}
    return schemas


def describe_columns(properties: dict[str, Any], kinds: Mapping[str, str]) -> None:
    """Write the columns of these types into the JSON Schemas of a request's fields, `properties`."""
    strings = [name for name, kind in kinds.items() if kind == "string" and name != ID]
    sortable = [name for name, kind in kinds.items() if kind not in LIST_TYPES and name != ID]
    columns = [name for name in kinds if name != ID]
    any_sort = properties["sort"]["anyOf"][0]
    limits = {name: any_sort[name] for name in ("minProperties", "maxProperties")}
    sort = _object(dict.fromkeys(sortable, any_sort["additionalProperties"])) | limits
    boosts = _object({name: _any_of(*_boosts(kind)) for name, kind in kinds.items()})
    forms: dict[str, list[dict[str, Any]]] = {
        "filter": [_reference("Filter")],
        "group_by": [{"type": "string", "enum": strings}] if strings else [],
        "sort": [sort] if sortable else [],
        "boost": [boosts],
    }
    for name, allowed in forms.items():
        del properties[name]["anyOf"]
        properties[name] |= _any_of(*allowed, NULL)
    properties["facets"] |= {"items": {"type": "string", "enum": columns}} if columns else {"maxItems": 0}


def _boosts(kind: str) -> list[dict[str, Any]]:
    """Return the JSON Schemas of the boosts of a column of this type."""
    operands = {
        "equals": VALUES[kind],
        "log": {"type": "boolean", "const": True},
        "half_life": {"type": "string", "pattern": r"^([1-9][0-9]{0,5}|0\.0?[1-9])[hdw]$"},
    }
    weight = {"type": "number", "minimum": 0, "maximum": HEAVIEST}
    return [
        _object({name: operand, "weight": weight}) | {"required": [name, "weight"]}
        for name, operand in operands.items()
        if kind in BOOSTED_KINDS[name]
    ]


def _name(kind: str) -> str:
    return f"{kind.capitalize()}Operators"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"{SCHEMAS}{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _any_of(*schemas: dict[str, Any]) -> dict[str, Any]:
    if len(schemas) == 1:
        return schemas[0]
    return {"anyOf": list(schemas)}


def _has(name: str, kind: dict[str, Any]) -> dict[str, Any]:
    return {"required": [name], "properties": {name: kind}}


SOME = {"minItems": 1}
VECTOR = {"type": "array"}
ALONE: dict[str, Any] = {
    "required": ["vector"],
    "properties": {"vector": VECTOR, "text": NULL},
}  # a vector without a text
MODES_WITHOUT_MODEL = (
    "semantic: texts whose meaning is similar to that of the vector or the id. keyword: texts with the words of the "
    "text; words between quotation marks must occur. hybrid: both, for a text and a vector. The default is what the "
    "request has: keyword for a text alone."
)
LISTS = ("group_by", "min_score", "rerank")  # fields that a list of texts, without a search, cannot have
SEVERAL = [_has("filter", {"type": "object"}), _has("sort", {"type": "object"}), _has("facets", {"minItems": 1})]
TOGETHER: dict[str, Any] = {  # which fields of SimilarRequest go together
    "not": {
        "anyOf": [
            {"required": ["text", "id"], "properties": {"text": {"type": "string"}, "id": {"type": "string"}}},
            {
                "required": ["sort"],
                "properties": {"sort": {"type": "object"}},
                "anyOf": [_has("group_by", {"type": "string"}), _has("rerank", {"type": "object"})],
            },
            {
                "required": ["vector"],
                "properties": {"vector": VECTOR},
                "anyOf": [
                    _has("id", {"type": "string"}),
                    _has("queries", {"type": "string"}),
                    _has("mode", {"const": "keyword"}),
                    ALONE | {"anyOf": [_has("mode", {"const": "hybrid"}), _has("rerank", {"type": "object"})]},
                    ALONE | {"properties": ALONE["properties"] | {"without": SOME}, "required": ["vector", "without"]},
                ],
            },
            {"required": ["without", "mode"], "properties": {"without": SOME, "mode": {"const": "semantic"}}},
            {"required": ["without", "id"], "properties": {"without": SOME, "id": {"type": "string"}, "mode": NULL}},
        ]
    },
    "if": {"properties": {"text": NULL, "id": NULL, "vector": NULL}},
    "then": {"properties": dict.fromkeys(LISTS, NULL) | {"without": {"maxItems": 0}}, "anyOf": SEVERAL},
}


def model_rules(*, has_keywords: bool) -> list[dict[str, Any]]:
    """Return the JSON Schemas of requests that need the model, for a bundle that has none."""
    text: dict[str, Any] = {"text": {"type": "string"}, "vector": NULL}  # without a vector
    by_meaning = {"required": ["text", "mode"], "properties": text | {"mode": {"enum": ["semantic", "hybrid"]}}}
    if not has_keywords:
        by_meaning = {"required": ["text"], "properties": text}
    return [_has("queries", {"type": "string"}), by_meaning]


def floor_rules(floor: Mapping[str, FloorInfo]) -> list[dict[str, Any]]:
    """Return the JSON Schemas of requests that name the floor where an index with these floors has none."""
    named: dict[str, Any] = {"min_score": {"const": FLOOR}}
    defaults = {"text": "hybrid" if "hybrid" in floor else "semantic", "id": "semantic"}  # by the field of the query
    rules = [{"required": [*named, "fusion_weight"], "properties": named | {"fusion_weight": {"type": "number"}}}]
    for mode in [mode for mode, measured in floor.items() if measured.score is None]:
        rules.append({"required": [*named, "mode"], "properties": named | {"mode": {"const": mode}}})
        for field, default in defaults.items():
            if mode == default:
                query = {field: {"type": "string"}, "mode": NULL}
                rules.append({"required": [*named, field], "properties": named | query})
    return rules


def describe_app(
    app: FastAPI,
    kinds: Mapping[str, str],
    *,
    dim: int,
    has_model: bool,
    has_keywords: bool,
    has_reranker: bool,
    floor: Mapping[str, FloorInfo],
    max_texts: int = MOST_TEXTS,
) -> dict[str, Any]:
    """Return the document over a corpus with columns of these types, whose model has `dim` dimensions.

    Without a reranker, its routes are left out; the app itself leaves out those that need a model. floor has what was
    measured for each mode. max_texts is the number of texts of a request.
    """
    document = deepcopy(FastAPI.openapi(app))  # FastAPI makes it once and keeps it; the next bundle can have a reranker
    for path in [path for path in document["paths"] if path.endswith("/rerank") and not has_reranker]:
        del document["paths"][path]
    schemas = document["components"]["schemas"]
    schemas |= filter_schemas(kinds)
    write_reply_schemas(document, has_model=has_model)
    for schema in schemas.values():
        if "dimensions" in schema.get("properties", {}):
            schema["properties"]["dimensions"]["anyOf"][0]["maximum"] = dim
        for name, field in schema.get("properties", {}).items():
            for form in field.get("oneOf", [field]):
                if form.get("maxItems") == MOST_TEXTS:
                    form["maxItems"] = max(1, max_texts - (name == "sentences"))  # the source counts too
    properties = schemas["SimilarRequest"]["properties"]
    describe_columns(properties, kinds)
    properties["vector"]["anyOf"][0] |= {"minItems": dim, "maxItems": dim}
    if kinds.get(PATH) != "string" or kinds.get(PASSAGE_NUMBER) != "number":
        _forbid_around(document)
    if not has_reranker:
        del properties["rerank"]["anyOf"]
        properties["rerank"] |= NULL
    rules = deepcopy(TOGETHER)
    if not has_model:
        properties["mode"]["description"] = MODES_WITHOUT_MODEL
        rules["not"]["anyOf"] += model_rules(has_keywords=has_keywords)
    if floor:
        rules["not"]["anyOf"] += floor_rules(floor)
    else:
        properties["min_score"]["anyOf"] = [{"type": "number"}, NULL]
    schemas["SimilarRequest"] |= rules
    used = used_schemas(document)
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(used)}
    return document


def _forbid_around(document: dict[str, Any]) -> None:
    """Let `before` and `after` of a passage be 0 alone, for a corpus without documents."""
    for parameter in document["paths"]["/passages/{id}"]["get"]["parameters"]:
        if parameter["name"] in ("before", "after"):
            parameter["schema"]["maximum"] = 0


REPLIES: dict[str, Any] = {  # the reply in JSON with status 200 of each operation but MCP's
    "similar": SimilarReply,
    "passage": FoundPassageReply,
    "document": DocumentReply,
    "health": HealthReply,
    "predict": PredictReply,
    "info": InfoReply,
    "embeddings": EmbeddingsReply,
    "models": ModelsReply,
    "model": ModelReply,
    "embed": list[list[float]],
    "similarity": list[float],
    "embed_or_compare": list[list[float]] | list[float],
    "tokenize": list[list[SpelledToken]],
    "rerank": list[Rank],
    "rerank_jina": JinaReply,
    "rerank_cohere": CohereReply,
}
ERRORS: dict[str, Any] = {  # the errors of paths, the first that a path begins with
    "/v1/rerank": JinaErrorReply,
    "/v2/rerank": CohereErrorReply,
    "/v1/": OpenAIErrorReply,
    "/": ErrorReply,
}


def write_reply_schemas(document: dict[str, Any], *, has_model: bool) -> None:
    """Write the schemas of all replies in JSON into an OpenAPI document, also of errors in the forms of other APIs."""
    models = {**REPLIES, **ERRORS}
    if not has_model:
        models["info"] = InfoWithoutModelReply
    made, added = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(model)) for name, model in models.items()], ref_template=f"{SCHEMAS}{{model}}"
    )
    document["components"]["schemas"] |= added["$defs"]
    for path, methods in document["paths"].items():
        error = made[next(start for start in ERRORS if path.startswith(start)), "validation"]
        for operation in methods.values():
            replies = operation["responses"]
            if (reply := made.get((operation["operationId"], "validation"))) is not None:
                replies["200"]["content"] = {"application/json": {"schema": reply}}
            if replies.get("422", {}).get("description") == "Validation Error":  # by FastAPI, for all with parameters
                del replies["422"]
            for status in [status for status in replies if status >= "400"]:
                content = replies[status].get("content")
                if content is None or f"{SCHEMAS}{ErrorReply.__name__}" in json.dumps(content):
                    replies[status]["content"] = {"application/json": {"schema": error}}


def used_schemas(document: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that the paths of an OpenAPI document use, also through other schemas."""
    used = set[str]()
    waiting: list[Any] = [document["paths"]]
    while waiting:
        found = set(re.findall(rf'"{SCHEMAS}(\w+)"', json.dumps(waiting.pop()))) - used
        used |= found
        waiting += [document["components"]["schemas"][name] for name in found]
    return used
