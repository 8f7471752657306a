"""What a caller sends has an upper length: each string, each list and each body of each route and tool."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from semsearch.app.app import App
from semsearch.app.mcp.messages import RpcMessage
from semsearch.app.routes.clients.tei import AnyRequest
from semsearch.app.routes.fields import ClientRequest
from semsearch.app.settings import Settings
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.request import LONGEST_WITHOUT, LocalRequest, StrictRequest

JSON = {"content-type": "application/json"}
# objects of any content, and where their lengths are checked
CHECKED_ELSEWHERE = {
    "SimilarRequest.filter": "count_values",
    "SimilarRequest.boost": "read_boosts",
    "RpcMessage.params": "the models of the tools",
}


def models_below(*parents: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for parent in parents:
        yield parent
        yield from models_below(*parent.__subclasses__())


def unlimited(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yield the places of a JSON Schema where a string, a list or an object has no upper length."""
    kind = schema.get("type")
    if kind == "string" and not schema.keys() & {"maxLength", "enum", "const"}:
        yield where
    if kind == "array" and "maxItems" not in schema:
        yield where
    if kind == "object" and not schema.keys() & {"properties", "maxProperties"}:
        yield where
    for name, inner in schema.get("properties", {}).items():
        yield from unlimited(inner, f"{where}.{name}")
    for name in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(name), dict):
            yield from unlimited(schema[name], where)
    for name in ("anyOf", "oneOf"):
        for inner in schema.get(name, ()):
            yield from unlimited(inner, where)
    for name, inner in schema.get("$defs", {}).items():
        yield from unlimited(inner, name)


def test_each_field_of_each_model_has_an_upper_length(make_app: Callable[..., App]) -> None:
    _ = make_app().fastapi.routes  # imports all models
    models = {*models_below(StrictRequest, ClientRequest, RpcMessage, AnyRequest)} - {LocalRequest}  # nobody sends it
    found = {place for model in models for place in unlimited(model.model_json_schema(), model.__name__)}
    assert found == CHECKED_ELSEWHERE.keys()
    fields = {model.__name__: list(model.model_fields) for model in models}
    assert {"without", "id", "include"} <= set(fields["SimilarRequest"])
    assert {"FetchArguments", "RerankRequest", "EmbedRequest", "TextObject", "PredictRequest"} <= fields.keys()


def test_each_parameter_of_a_path_and_each_filter_has_an_upper_length(make_app: Callable[..., App]) -> None:
    document = make_app().fastapi.openapi()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                assert not list(unlimited(parameter["schema"], f"{path} {parameter['name']}"))
    filters = {name: schema for name, schema in document["components"]["schemas"].items() if "Operators" in name}
    assert filters
    for name, schema in filters.items():  # all values of a filter are counted together
        assert set(unlimited(schema, name)) == {f"{name}.$in", f"{name}.$nin"}


def test_the_document_has_the_number_of_texts_of_the_settings(connect: Callable[..., httpx.Client]) -> None:
    schemas = connect(settings=Settings(max_texts=7)).get("/openapi.json").json()["components"]["schemas"]
    assert schemas["PredictRequest"]["properties"]["text"]["oneOf"][1]["maxItems"] == 7
    assert schemas["Sentences"]["properties"]["sentences"]["maxItems"] == 6


@pytest.mark.promise("text", "id", "without", "PredictRequest.text", "EmbedRequest.inputs", "RerankRequest.query")
@pytest.mark.parametrize(
    ("path", "body", "field", "most"),
    [
        ("/similar", {"text": "{}"}, "text", CHARACTERS_PER_TEXT),
        ("/similar", {"id": "{}"}, "id", CHARACTERS_PER_TEXT),
        ("/similar", {"text": "goose", "without": ["goose", "{}"]}, "without.1", LONGEST_WITHOUT),
        ("/predict", {"text": ["goose", "{}"]}, "text.1", CHARACTERS_PER_TEXT),
        ("/embed", {"inputs": "{}"}, "inputs", CHARACTERS_PER_TEXT),
        ("/rerank", {"query": "{}", "texts": ["goose"]}, "query", CHARACTERS_PER_TEXT),
    ],
)
def test_a_string_may_be_so_long_and_no_longer(
    client: httpx.Client, path: str, body: dict[str, Any], field: str, most: int
) -> None:
    bodies = (json.dumps(body).replace("{}", "g" * length) for length in (most, most + 1))
    accepted, refused = (client.post(path, content=each, headers=JSON) for each in bodies)
    assert accepted.status_code in (200, 404, 424)
    assert (refused.status_code, refused.json()["error_type"]) == (422, "invalid")
    expected = f"{field}: string should have at most {most} characters, found 'ggg"
    assert refused.json()["error"].startswith(expected)
    assert len(refused.content) < 300


@pytest.mark.promise("text", "without")
def test_the_words_to_leave_out_count_with_the_text(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_tokens=40))
    body = {"text": "g" * 300, "without": ["a" * 200, "b" * 140]}
    assert client.post("/similar", json=body).status_code == 200
    refused = client.post("/similar", json=body | {"text": "g" * 301})
    error = "without: 641 characters with the text, at most 640; send fewer or shorter ones"
    assert (refused.status_code, refused.json()["error"]) == (413, error)


MANY: dict[str, tuple[str, bytes]] = {
    "lists": ("/similar", b'{"text": "a", "filter": {"x": [' + b"[]," * 1_000_000 + b"[]]}}"),
    "wrong items": ("/predict", b'{"text": [' + b"{}," * 1_000_000 + b"{}]}"),
    "unknown fields": ("/similar", json.dumps({f"field{number}": number for number in range(60_000)}).encode()),
    "strings": ("/v1/embeddings", b'{"x": [' + b'"",' * 200_000 + b'""]}'),
    "brackets": ("/mcp", b"[" * 3_000_000),
    "a message": ("/mcp", b'{"jsonrpc": "2.0", "params": {"x": [' + b"1," * 1_000_000 + b"1]}}"),
    "another encoding": ("/similar", ('{"x": [' + "0," * 100_000 + "0]}").encode("utf-16")),
    "a string without end": ("/similar", b"[" * 60_000 + b'"' + b'\\"' * 500_000),
}


@pytest.mark.parametrize("kind", MANY)
def test_a_body_of_very_many_values_is_refused_before_it_is_read(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path, body = MANY[kind]
    monkeypatch.setattr(json.JSONDecoder, "decode", lambda *_: pytest.fail("it reads the body"))
    refused = client.post(path, content=body, headers=JSON)
    monkeypatch.undo()
    assert refused.status_code == 413
    assert "body: more than 50000 commas, lists and objects outside of strings; send fewer values" in refused.text


def test_any_characters_within_strings_are_no_values(client: httpx.Client) -> None:
    for text in ("[{," * 21_000, 'a "quoted, [part]" ' * 3_000, "\\," * 30_000 + '"'):
        for ascii in (True, False):
            body = json.dumps({"id": f"é{text}"}, ensure_ascii=ascii).encode()
            assert client.post("/similar", content=body, headers=JSON).status_code == 404
