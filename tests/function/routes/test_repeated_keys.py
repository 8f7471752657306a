"""A key that an object of a request has twice is refused on every route, and a text that looks like one is not."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.commands.query import parse_arguments
from function.routes.repeated_keys import RepeatedKeyError, refuse_repeated_keys

JSON = {"content-type": "application/json"}
FOUND = "found 2 times in one object, expected each key once; send one of them"


def test_every_route_refuses_a_repeated_key(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    with_body = {path for path, methods in paths.items() if "requestBody" in methods.get("post", {})}
    assert {"/similar", "/v1/embeddings", "/embed", "/mcp"} < with_body
    for path in with_body | {"/rerank", "/v1/rerank", "/v2/rerank"}:  # described only with a reranker
        reply = client.post(path, content='{"a": 1, "a": 1}', headers=JSON)
        assert reply.status_code in (400, 422), path
        assert f"a: {FOUND}" in reply.text, path


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"text": "goose", "te\\u0078t": "goose"}', "text"),
        ('{"text": "a:b", "filter": {"chapter": {"$gt": 1, "$lt": 5, "$gt": 2}}}', "filter.chapter.$gt"),
        ('{"text": "goose", "nothing": [[], [{}, {"a": {}, "a": 1}]]}', "nothing.1.1.a"),
    ],
)
def test_a_repeated_key_is_refused_with_its_place_in_each_encoding(client: httpx.Client, body: str, place: str) -> None:
    for content_type, encoding in (
        ("application/json", "utf-8"),
        ("APPLICATION/JSON", "utf-8-sig"),
        ("application/json", "utf-16"),
    ):
        reply = client.post("/similar", content=body.encode(encoding), headers={"content-type": content_type})
        assert (reply.status_code, reply.json()["error"]) == (422, f"{place}: {FOUND}")


def test_openais_clients_and_mcp_read_the_refusal_in_their_form(client: httpx.Client) -> None:
    error = client.post("/v1/embeddings", content='{"input": "a", "input": "b"}', headers=JSON).json()["error"]
    assert (error["param"], error["type"]) == ("input", "invalid_request_error")
    call = """{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments":
        {"text": "goose", "filter": {"chapter": 1, "chapter": 2}}}}"""
    expected = {"code": -32600, "message": f"params.arguments.filter.chapter: {FOUND}"}
    assert client.post("/mcp", content=call, headers=JSON).json()["error"] == expected


def test_keys_that_are_not_repeated_are_taken(client: httpx.Client) -> None:
    text = 'the key "text": "text": is a word here, {"text": 1, "text": 2}'
    body = {"text": text, "filter": {"chapter": {"$gte": 1, "$lte": 5}, "$or": [{"chapter": 2}, {"chapter": 3}]}}
    assert client.post("/similar", json=body).status_code == 200


def test_the_refusal_of_a_long_key_is_short(client: httpx.Client) -> None:
    key = json.dumps("k" * 10_000)
    reply = client.post("/similar", content=f"{{{key}: 1, {key}: 2}}", headers=JSON)
    assert f"{'k' * 60}…: {FOUND}" in reply.text
    assert len(reply.content) < 300


def test_the_refusal_of_a_key_that_is_half_a_surrogate_pair_can_be_sent(client: httpx.Client) -> None:
    reply = client.post("/similar", content=b'{"\\ud800": 1, "\\ud800": 2}', headers=JSON)
    assert (reply.status_code, reply.json()["error"]) == (422, f"?: {FOUND}")


def test_the_shell_refuses_a_repeated_key_in_a_filter(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["goose", "--filter", '{"year": {"$gt": 1, "$gt": 2}}'])
    assert f"argument --filter: year.$gt: {FOUND}" in capsys.readouterr().err


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
