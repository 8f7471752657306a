"""The JSON schemas of filters and of replies to /similar, and the changes to FastAPI's OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from semsearch.engine.metadata.boosts import BOOSTED_KINDS, HEAVIEST
from semsearch.engine.metadata.columns import COMPARED, ID
from semsearch.engine.metadata.filters import MOST_LEVELS, STRING_TYPES
from semsearch.search.request import MOST_COLUMNS

DATE_SCHEMA = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
VALUES = {  # JSON Schema of a value that is compared with a column, by the column's type
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": DATE_SCHEMA,
    "list": {"type": "string"},
}
DESCRIPTION = f"""\
Only texts whose metadata pass the filter are found. A value without an operator means `$eq`; all members of an object \
must hold. A list passes if one of its strings passes. `$startsWith` compares the beginning of strings. At most \
{MOST_LEVELS} filters may be within each other."""


def filter_schemas(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON Schemas of a filter over columns of these types, keyed by their names in the OpenAPI document."""
    filters = {"type": "array", "minItems": 1, "items": _reference("Filter")}
    columns = {name: {"anyOf": [VALUES[kind], _reference(_name(kind))]} for name, kind in kinds.items()}
    schemas = {"Filter": _object({**columns, "$and": filters, "$or": filters}) | {"description": DESCRIPTION}}
    for kind in sorted(set(kinds.values())):
        several = {"type": "array", "minItems": 1, "items": VALUES[kind]}
        operators = dict.fromkeys(("$eq", "$ne", *COMPARED), VALUES[kind]) | {"$in": several, "$nin": several}
        if kind in STRING_TYPES:
            operators["$startsWith"] = VALUES[kind]
        schemas[_name(kind)] = _object(operators | {"$exists": {"type": "boolean"}}) | {"minProperties": 1}
    return schemas


def describe_columns(properties: dict[str, Any], kinds: Mapping[str, str]) -> None:
    """Write the columns of these types into the JSON Schemas of a request's fields, `properties`."""
    strings = [name for name, kind in kinds.items() if kind == "string" and name != ID]
    sortable = [name for name, kind in kinds.items() if kind != "list" and name != ID]
    columns = [name for name in kinds if name != ID]
    properties["filter"]["anyOf"] = [_reference("Filter"), {"type": "null"}]
    properties["group_by"]["anyOf"] = [*([{"enum": strings}] if strings else []), {"type": "null"}]
    way = {"enum": ["asc", "desc"]}
    sort = _object(dict.fromkeys(sortable, way)) | {"minProperties": 1, "maxProperties": MOST_COLUMNS}
    properties["sort"]["anyOf"] = [*([sort] if sortable else []), {"type": "null"}]
    boosts = _object({name: {"anyOf": _boosts(kind)} for name, kind in kinds.items()})
    properties["boost"]["anyOf"] = [boosts, {"type": "null"}]
    properties["facets"] |= {"items": {"enum": columns}} if columns else {"maxItems": 0}


def _boosts(kind: str) -> list[dict[str, Any]]:
    """Return the JSON Schemas of the boosts of a column of this type."""
    operands = {
        "equals": VALUES[kind],
        "log": {"const": True},
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
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


class Scores(BaseModel):
    """The scores that make up the score of a result: the cosine (-1 to 1), BM25 (0 or more), and their sum in hybrid.

    `rerank` is the probability (0 to 1) that the reranker gives to a candidate.
    """

    semantic: float | None = None
    keyword: float | None = None
    hybrid: float | None = None
    boost: float | None = Field(default=None, description="what the boosts of columns added")
    rerank: float | None = None


class Snippet(BaseModel):
    """The part of a text to show: from `start` to before `end`, in characters (Unicode code points).

    `text` is this part, without the syntax of Markdown if it is from such a document; `highlights` are ranges in it.
    """

    start: int
    end: int
    text: str
    highlights: list[tuple[int, int]] = []


class Result(BaseModel):
    """A text of the corpus: its row number, id, score, text and metadata.

    `score` is the cosine (-1 to 1) in mode semantic and BM25 (0 or more) in mode keyword. In mode hybrid it combines
    the two `scores`. With `rerank`, it only compares the results of one search. It is null where texts are listed
    without a search.
    """

    index: int
    id: str
    score: float | None
    text: str
    metadata: dict[str, Any]
    scores: Scores | None = None
    highlights: list[tuple[int, int]] = Field(
        default=[], description="start and end of the ranges that answer the query, in characters of the text"
    )
    snippet: Snippet | None = None

    # a reply leaves out what `include` does not name, and what was not asked for
    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class GroupResult(Result):
    """A result; with `group_by` it is the best of its group, whose further results are `other_passages`."""

    group: str | None = None
    other_passages: list[Result] = []

    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class FacetValue(BaseModel):
    """A value of a column, and how many texts have it."""

    value: str | float | bool
    count: int


class FacetRange(BaseModel):
    """A range of numbers or dates, which the filter {"$gte": from, "$lt": to} finds, and how many texts are in it.

    `from` or `to` is left out if no number or date is so low or high.
    """

    from_: float | str | None = Field(default=None, alias="from")
    to: float | str | None = None
    count: int


class SimilarReply(BaseModel):
    """The results, best first. `truncated` is true if the text was too long and its end was ignored.

    `facets` has the most frequent values of each column, or ranges of many numbers or dates; `total` is the number of
    texts that were counted or listed.
    """

    results: list[GroupResult]
    truncated: bool
    facets: dict[str, list[FacetValue] | list[FacetRange]] | None = None
    total: int | None = None
    corrected: dict[str, list[str]] | None = Field(
        default=None, description="the words of the corpus that replaced misspelled words of the text"
    )
    queries: Literal["table", "model"] | None = Field(
        default=None, description="what embedded the text, if the corpus has a query table"
    )


def _form(name: str, kind: dict[str, Any], *absent: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: kind} | {other: {"type": "null"} for other in absent}}


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
        "paths": {path: methods for path, methods in paths if has_reranker or not path.endswith("/rerank")}
    }
    schemas = document["components"]["schemas"]
    schemas |= filter_schemas(kinds)
    reply = SimilarReply.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= reply.pop("$defs") | {"SimilarReply": reply}
    content = document["paths"]["/similar"]["post"]["responses"]["200"]["content"]
    content["application/json"]["schema"] = {"$ref": "#/components/schemas/SimilarReply"}
    properties = schemas["SimilarRequest"]["properties"]
    describe_columns(properties, kinds)
    if has_reranker:
        options = [{"$ref": "#/components/schemas/RerankOptions"}]
    else:
        options = []
    properties["rerank"]["anyOf"] = [*options, {"type": "null"}]
    schemas["SimilarRequest"] |= TOGETHER
    return document
