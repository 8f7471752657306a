"""A key that an object of a request has twice is refused on every route, and a text that looks like one is not."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.app.http import HttpError
from semsearch.app.routes.direct import check_keys

JSON = {"content-type": "application/json"}
FOUND = "found 2 times in one object, expected each key once; send one of them"


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/similar", '{"text": "goose", "te\\u0078t": "goose"}', "text"),
        ("/similar", '{"text": "a:b", "filter": {"chapter": 1, "chapter": 2}}', "chapter"),
        ("/similar", '{"\\ud800": 1, "\\ud800": 2}', "?"),
        ("/mcp", '{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "tools/list"}', "id"),
        ("/rerank", '{"query": "goose", "texts": ["goose"], "query": "judge"}', "query"),
    ],
)
def test_a_repeated_key_is_refused(client: httpx.Client, path: str, body: str, key: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        reply = client.post(path, content=body.encode(encoding), headers=JSON)
        assert (reply.status_code, reply.json()) == (422, {"error": f"{key}: {FOUND}", "error_type": "invalid"})


def test_openais_clients_read_it_in_their_form(client: httpx.Client) -> None:
    reply = client.post("/v1/embeddings", content='{"input": "goose", "input": 1}', headers=JSON)
    error = {"message": f"input: {FOUND}", "type": "invalid_request_error", "param": "input", "code": None}
    assert (reply.status_code, reply.json()["error"]) == (400, error)


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


def is_repeated(value: object) -> bool:
    if isinstance(value, tuple):
        return len({key for key, _ in value}) < len(value) or any(is_repeated(inner) for _, inner in value)
    return isinstance(value, list) and any(map(is_repeated, value))


@given(objects)
def test_a_repeated_key_is_found_wherever_it_is(value: object) -> None:
    if is_repeated(value):
        with pytest.raises(HttpError, match=r"found . times in one object"):
            check_keys(written(value).encode())
    else:
        check_keys(written(value).encode())
