"""A value of another type is refused: a number between quotation marks, 1 for true, a word for a list."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from semsearch import Search
from semsearch.app.app import App
from semsearch.app.mcp.messages import RpcMessage
from semsearch.app.routes.fields import ClientRequest
from semsearch.search.request import SimilarRequest, StrictRequest
from tests.app.routes.test_limits import models_below

# a value of each type of JSON, which another type could be made of
VALUES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "integer": [1, 0, 2],
    "number": [0.5, 2.5],
    "string": ["1", "0.5", "true", ""],
    "array": [[], [1]],
    "object": [{}, {"1": 1}],
}

ONE_FOR_TRUE = ("normalize", 1)  # the only other value that is accepted: pydantic compares with Literal[True] by ==


def types_of(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    """Return the types of JSON that a JSON Schema allows."""
    if "$ref" in schema:
        return types_of(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    found = {schema["type"]} if "type" in schema else set()
    for form in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= types_of(form, definitions)
    if "number" in found:
        found.add("integer")
    return found


def refuses(model: type[BaseModel], field: str, value: object) -> bool:
    """Say whether a request is refused because of the value of this field."""
    try:
        model.model_validate({field: value})
    except ValidationError as error:
        return any(each["loc"][:1] == (field,) for each in error.errors())
    return False


@pytest.mark.promise("types")
def test_each_field_of_each_request_refuses_values_of_all_other_types(make_app: Callable[..., App]) -> None:
    _ = make_app().fastapi.routes  # imports all models
    tried = set()
    for model in models_below(StrictRequest, ClientRequest, RpcMessage):
        schema = model.model_json_schema()
        for field, form in schema.get("properties", {}).items():
            types = types_of(form, schema.get("$defs", {}))
            assert types, f"{model.__name__}.{field}: {form}"
            for kind in VALUES.keys() - types:
                for value in VALUES[kind]:
                    is_refused = (field, value) != ONE_FOR_TRUE
                    assert refuses(model, field, value) == is_refused, f"{model.__name__}.{field}: {value!r}"
            tried.add(f"{model.__name__}.{field}")
    assert {f"SimilarRequest.{field}" for field in SimilarRequest.model_fields} < tried
    assert {"RerankOptions.candidates", "PredictRequest.text", "EmbedRequest.truncate", "FetchArguments.before"} < tried


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, marks=pytest.mark.promise(field))
        for field, value in (
            ("num_results", "5"),
            ("num_results", True),
            ("num_results", 2.5),
            ("offset", "0"),
            ("offset", False),
            ("min_score", "0.5"),
            ("min_score", True),
            ("group_size", "3"),
            ("fusion_weight", "0.5"),
            ("fusion_weight", True),
            ("exact", 1),
            ("exact", "true"),
            ("prefix", 1),
            ("correct", 0),
            ("highlights", "false"),
            ("facets", "genre"),
            ("include", "text"),
            ("without", "novel"),
            ("rerank", "5"),
            ("sort", "price"),
            ("sort", {"price": 1}),
            ("facets", [1]),
            ("include", [True]),
            ("without", [1]),
            ("filter", "genre"),
            ("boost", 1),
            ("group_by", 1),
            ("mode", True),
            ("facets_of", 1),
            ("queries", True),
        )
    ],
)
def test_a_search_refuses_a_value_of_another_type(shelf: Search, field: str, value: Any) -> None:
    argument = "top_k" if field == "num_results" else field
    with pytest.raises(ValueError, match=rf"^{argument}.*: .*, found "):
        shelf.search("the baker", **{argument: value})


@pytest.mark.promise("num_results")
def test_a_whole_number_can_have_a_point(shelf: Search) -> None:
    count: Any = 2.0
    assert len(shelf.search("the baker", top_k=count, offset=count)) == 2
