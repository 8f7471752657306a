"""A key that an object of a request has twice is refused on every route, and a text that looks like one is not."""

import httpx
import pytest

JSON = {"content-type": "application/json"}
FOUND = "found 2 times in one object, expected each key once; send one of them"


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/similar", '{"text": "goose", "te\\u0078t": "goose"}', "text"),
        ("/similar", '{"text": "a:b", "filter": {"$or": [{"chapter": 1, "chapter": 2}]}}', "chapter"),
        ("/similar", '{"\\ud800": 1, "\\ud800": 2}', "?"),
        ("/mcp", '{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "tools/list"}', "id"),
        ("/rerank", '{"query": "goose", "texts": ["goose"], "query": "judge"}', "query"),
    ],
)
def test_a_repeated_key_is_refused(client: httpx.Client, path: str, body: str, key: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        reply = client.post(path, content=body.encode(encoding), headers=JSON)
        assert (reply.status_code, reply.json()) == (422, {"error": f"{key}: {FOUND}", "error_type": "invalid"})


def test_a_text_that_looks_like_a_repeated_key_and_a_key_of_two_objects_are_taken(client: httpx.Client) -> None:
    body = r'{"text": "{\"a\": 1, \"a\": 2}", "filter": {"$or": [{"chapter": 1}, {"chapter": 2}]}}'
    assert client.post("/similar", content=body, headers=JSON).status_code == 200


def test_openais_clients_read_it_in_their_form(client: httpx.Client) -> None:
    reply = client.post("/v1/embeddings", content='{"input": "goose", "input": 1}', headers=JSON)
    error = {"message": f"input: {FOUND}", "type": "invalid_request_error", "param": "input", "code": None}
    assert (reply.status_code, reply.json()["error"]) == (400, error)
