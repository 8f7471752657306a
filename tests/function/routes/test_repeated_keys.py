"""A key that an object of a request has twice is refused on every route, and a text that looks like one is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.routes.repeated_keys import RepeatedKeyError, refuse_repeated_keys

JSON = {"content-type": "application/json"}
FOUND = "found 2 times in one object, expected each key once; send one of them"
SEARCH = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": %s}}'

# path, body, place of the repeated key
REPEATED: list[tuple[str, str, str]] = [
    ("/similar", '{"text": "goose", "text": "judge"}', "text"),
    ("/similar", '{"text": "goose", "te\\u0078t": "goose"}', "text"),
    ("/similar", '{"text": "goose", "text": 5}', "text"),
    ("/similar", '{"text": "a:b", "filter": {"chapter": 1, "chapter": 2}}', "filter.chapter"),
    ("/similar", '{"text": "goose", "filter": {"chapter": {"$gt": 1, "$lt": 5, "$gt": 2}}}', "filter.chapter.$gt"),
    ("/similar", '{"text": "goose", "filter": {"$or": [{}, {"true": true, "true": true}]}}', "filter.$or.1.true"),
    ("/similar", '{"text": "goose", "nothing": [[], [{}, {"a": {}, "a": 1}]]}', "nothing.1.1.a"),
    ("/predict", '{"text": "goose", "prompt_name": "query", "prompt_name": null}', "prompt_name"),
    ("/v1/embeddings", '{"input": "goose", "input": "judge"}', "input"),
    ("/v1/embeddings", '{"input": "goose", "unknown": 1, "unknown": 2}', "unknown"),
    ("/embed", '{"inputs": "goose", "inputs": "judge"}', "inputs"),
    ("/", '{"inputs": "goose", "truncate": true, "truncate": false}', "truncate"),
    (
        "/similarity",
        '{"inputs": {"source_sentence": "a", "sentences": ["b"], "sentences": ["c"]}}',
        "inputs.sentences",
    ),
    ("/tokenize", '{"inputs": "goose", "inputs": "judge"}', "inputs"),
    ("/rerank", '{"query": "goose", "texts": ["goose"], "query": "judge"}', "query"),
    ("/v1/rerank", '{"query": "goose", "documents": [{"text": "goose", "text": "judge"}]}', "documents.0.text"),
    ("/v2/rerank", '{"query": "goose", "documents": ["goose"], "top_n": 1, "top_n": 2}', "top_n"),
]


@pytest.mark.parametrize(("path", "body", "place"), REPEATED)
def test_a_repeated_key_is_refused_with_its_place(client: httpx.Client, path: str, body: str, place: str) -> None:
    for content_type, encoding in (
        ("application/json", "utf-8"),
        ("APPLICATION/JSON", "utf-8"),
        ("application/json", "utf-8-sig"),
        ("application/json", "utf-16"),
    ):
        reply = client.post(path, content=body.encode(encoding), headers={"content-type": content_type})
        error, *_ = reply.json().values()
        if path == "/v1/embeddings":
            assert (reply.status_code, error["param"], error["type"]) == (400, place, "invalid_request_error")
            error = error["message"]
        else:
            assert reply.status_code == 422
            assert reply.json().get("error_type", "invalid") == "invalid"
        assert error == f"{place}: {FOUND}"


def test_no_route_takes_a_repeated_key(connect: Callable[..., httpx.Client], rerank_bundle: Path) -> None:
    paths = connect(bundle=rerank_bundle).get("/openapi.json").json()["paths"]
    with_body = {path for path, methods in paths.items() if "requestBody" in methods.get("post", {})}
    assert with_body == {path for path, _, _ in REPEATED} | {"/mcp"}


@pytest.mark.parametrize(
    ("message", "place"),
    [
        (SEARCH % '{"text": "goose", "text": "judge"}', "params.arguments.text"),
        (SEARCH % '{"text": "goose", "filter": {"chapter": 1, "chapter": 2}}', "params.arguments.filter.chapter"),
        ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "tools/list"}', "id"),
    ],
)
def test_mcp_refuses_a_repeated_key_as_an_invalid_request(client: httpx.Client, message: str, place: str) -> None:
    reply = client.post("/mcp", content=message, headers=JSON)
    assert (reply.status_code, reply.json()["error"]) == (400, {"code": -32600, "message": f"{place}: {FOUND}"})


@pytest.mark.parametrize(
    "body",
    [
        {"text": 'the key "text": "text": is a word here, {"text": 1, "text": 2}'},
        {"text": "https://example.org:8000/a:b", "num_results": 1},
        {"text": "goose", "filter": {"chapter": {"$gte": 1, "$lte": 5}, "$or": [{"chapter": 2}, {"chapter": 3}]}},
    ],
)
def test_keys_that_are_not_repeated_are_taken(client: httpx.Client, body: dict[str, Any]) -> None:
    assert client.post("/similar", json=body).status_code == 200


def test_the_refusal_of_a_long_key_is_short(client: httpx.Client) -> None:
    key = json.dumps("k" * 10_000)
    for path in ("/similar", "/mcp"):
        reply = client.post(path, content=f"{{{key}: 1, {key}: 2}}", headers=JSON)
        assert reply.status_code in (400, 422)
        assert f"{'k' * 60}…: {FOUND}" in reply.text
        assert len(reply.content) < 300


def test_the_refusal_of_a_key_that_is_half_a_surrogate_pair_can_be_sent(client: httpx.Client) -> None:
    reply = client.post("/similar", content=b'{"\\ud800": 1, "\\ud800": 2}', headers=JSON)
    assert (reply.status_code, reply.json()["error"]) == (422, f"?: {FOUND}")


def test_a_large_body_with_a_repeated_key_is_refused_with_its_place(client: httpx.Client) -> None:
    body = b'{"text": [%s {"a": 1, "a": 2}]}' % (b"[]," * 500_000)
    reply = client.post("/predict", content=body, headers=JSON)
    assert (reply.status_code, reply.json()["error"]) == (422, f"text.500000.a: {FOUND}")


objects = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from("abcd") | st.text(max_size=2), inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)


def written(value: object) -> str:
    """Write a value as JSON; a tuple of pairs is an object."""
    if isinstance(value, tuple):
        return "{" + ",".join(f"{json.dumps(key)} : {written(inner)}" for key, inner in value) + "}"
    return "[" + ",".join(map(written, value)) + "]" if isinstance(value, list) else json.dumps(value)


def repeated_places(value: object, place: str = "") -> set[str]:
    """Return the paths of all repeated keys."""
    members = value if isinstance(value, tuple) else tuple(enumerate(value)) if isinstance(value, list) else ()
    keys = [key for key, _ in members]
    found = {f"{place}.{key}" for key in keys if keys.count(key) > 1}
    return found.union(*(repeated_places(inner, f"{place}.{key}") for key, inner in members))


@given(objects)
def test_a_repeated_key_is_found_wherever_it_is(value: object) -> None:
    places, body = repeated_places(value), written(value).encode()
    if not places:
        refuse_repeated_keys(body)
        return
    with pytest.raises(RepeatedKeyError) as caught:
        refuse_repeated_keys(body)
    assert "." + ".".join(caught.value.place) in places
