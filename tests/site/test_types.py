"""The types of the search in the browser are those of the requests and hits in Python."""

import re
from dataclasses import fields

import pytest

from semsearch.engine.hits import Hit
from semsearch.search.request import SimilarRequest
from tests.project import ROOT

TYPES = (ROOT / "semsearch/site/browser/worker/types.d.ts").read_text(encoding="utf-8")
KINDS = {  # types of JSON by the beginnings of types in TypeScript, the first that a type begins with
    '"': "string",
    "string[]": "array",
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "Record<": "object",
    "Boosts": "object",
}


def fields_of(name: str) -> dict[str, str]:
    """Return the types of the fields of a type in TypeScript."""
    (body,) = re.findall(rf"^export type {name} = {{(.*?)}};$", TYPES, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"(\w+)\??: ([^;]+?)\s*(?:;|$)", body))


OF_REQUEST = fields_of("Request")


@pytest.mark.parametrize("name", OF_REQUEST)
def test_a_field_of_a_request_in_the_browser_is_one_of_similar_with_the_same_type(name: str) -> None:
    schema = SimilarRequest.model_json_schema()["properties"][name]
    forms = [form for each in schema.get("anyOf", [schema]) for form in each.get("oneOf", [each])]
    kinds = {form["type"].replace("integer", "number") for form in forms} - {"null"}
    if OF_REQUEST[name] != "any":
        stated = {
            next(KINDS[start] for start in KINDS if kind.startswith(start)) for kind in OF_REQUEST[name].split(" | ")
        }
        assert stated == kinds


def test_a_hit_in_the_browser_has_the_fields_of_the_engines() -> None:
    assert list(fields_of("Hit")) == [field.name for field in fields(Hit)]
