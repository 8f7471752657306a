"""What a caller may do wrong: refused with a 4xx, and a body that names the field and the limit; never a 500."""

import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from semsearch.app.app import App
from semsearch.app.settings import Settings

JSON = {"content-type": "application/json"}

# the body as it is sent, and what the message must contain; each is a 422
SIMILAR: dict[str, tuple[bytes, list[str]]] = {
    "blank text": (b'{"text": " \\t\\n"}', ["text: ", "empty or blank"]),
    "text as a number": (b'{"text": 5}', ["text: ", "string", "found 5"]),
    "half a surrogate pair": (b'{"text": "\\ud800"}', ["text: "]),
    "unknown field": (b'{"text": "a", "top_k": 5}', ["top_k: ", "not permitted"]),
    "unknown surrogate field": (b'{"text": "a", "\\ud800": 5}', ["body: "]),
    "num_results 0": (b'{"text": "a", "num_results": 0}', ["num_results: ", "to 1", "found 0"]),
    "num_results 1e400": (b'{"text": "a", "num_results": 1e400}', ["num_results: ", "inf"]),
    "min_score NaN": (b'{"text": "a", "min_score": NaN}', ["min_score: ", "finite number", "found nan"]),
    "min_score as a word": (b'{"text": "a", "min_score": "high"}', ["min_score: ", "'floor'", "found 'high'"]),
    "sort upwards": (b'{"text": "a", "sort": {"who": "up"}}', ["sort.who: ", "'asc' or 'desc'", "found 'up'"]),
    "a filter by half a surrogate pair": (
        b'{"text": "a", "filter": {"\\ud800": 1}}',
        ["filter: expected the name of a column, $and, $or or $not, found '\\ud800'; the columns are: "],
    ),
    "two mistakes": (b'{"text": "", "num_results": 0}', ["text: ", "; num_results: "]),
    "no body": (b"", ["body: field required"]),
    "a list as body": (b'["a"]', ["body: ", "found ['a']"]),
}
PREDICT: dict[str, tuple[bytes, list[str]]] = {
    "an empty text of several": (b'{"text": ["a", " "]}', ["text.1: ", "blank"]),
    "half a surrogate pair of several": (b'{"text": ["a", "\\udfff"]}', ["text.1: "]),
    "too many texts": (json.dumps({"text": ["a"] * 2049}).encode(), ["text: 2049 texts, at most 2048; send fewer"]),
}
# each is a 400
UNREADABLE: dict[str, tuple[bytes, list[str]]] = {
    "not JSON": (b'{"text": ', ["body: not JSON", "character", "; expected JSON"]),
    "not UTF-8": (
        b'{"text": "\xff"}',
        [
            "body: not readable: 'utf-8' codec can't decode byte 0xff in position 10",
            "; expected JSON in UTF-8, such as {",
        ],
    ),
    "brackets without end": (b"[" * 40_000, ["body: not readable: maximum recursion depth exceeded"]),
    "a number of 5,000 digits": (
        b'{"num_results": %s}' % (b"1" * 5000),
        ["body: not readable: ", "value has 5000 digits; expected JSON in UTF-8, such as {"],
    ),
}


def check_refusal(reply: httpx.Response, status: int, error_type: str, parts: list[str]) -> None:
    body = reply.json()
    assert (reply.status_code, body["error_type"]) == (status, error_type), body
    assert body.keys() == {"error", "error_type"}
    assert reply.headers["content-type"] == "application/json"
    for part in parts:
        assert part in body["error"]


@pytest.mark.parametrize("kind", SIMILAR | PREDICT | UNREADABLE)
def test_a_body_that_cannot_be_used_is_refused_and_told_why(client: httpx.Client, kind: str) -> None:
    content, parts = (SIMILAR | PREDICT | UNREADABLE)[kind]
    reply = client.post("/predict" if kind in PREDICT else "/similar", content=content, headers=JSON)
    check_refusal(reply, *((400, "bad_request") if kind in UNREADABLE else (422, "invalid")), parts)


@pytest.mark.parametrize("content_type", [None, "text/plain"])
def test_another_content_type_is_refused_with_the_one_expected(client: httpx.Client, content_type: str | None) -> None:
    headers = {"content-type": content_type} if content_type else {}
    reply = client.post("/similar", content=b'{"text": "goose"}', headers=headers)
    check_refusal(reply, 415, "media_type", [f"content-type {content_type or ''!r}", "expected application/json"])


@pytest.mark.parametrize("path", ["/similar", "/predict", "/rerank"])
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "gzip, br"])
def test_a_compressed_body_is_refused_with_the_coding_that_is_read(
    client: httpx.Client, path: str, coding: str
) -> None:
    content = gzip.compress(b'{"text": "goose"}')
    reply = client.post(path, content=content, headers=JSON | {"content-encoding": coding})
    check_refusal(reply, 415, "media_type", [f"content-encoding {coding!r}", "expected none", "uncompressed"])
    assert reply.headers["accept-encoding"] == "identity"  # RFC 9110, section 15.5.16


@pytest.mark.parametrize("coding", ["identity", ""])
def test_a_body_that_is_called_uncompressed_is_read(client: httpx.Client, coding: str) -> None:
    headers = JSON | {"content-encoding": coding}
    assert client.post("/similar", content=b'{"text": "goose"}', headers=headers).status_code == 200


def test_a_long_wrong_value_is_shown_in_part(client: httpx.Client) -> None:
    reply = client.post("/similar", json={"text": "goose", "num_results": "9" * 10_000})
    assert "found '" + "9" * 25 in reply.json()["error"]
    assert len(reply.content) < 300


BODY_OF_100 = b'{"text": "goose"}'.ljust(100)


def test_the_limit_is_that_of_the_settings(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_body_bytes=100))
    assert client.post("/similar", content=BODY_OF_100, headers=JSON).status_code == 200
    check_refusal(client.post("/similar", content=BODY_OF_100 + b" ", headers=JSON), 413, "too_large", ["at most 100"])


@pytest.mark.parametrize("depth", range(400, 1000, 40))
def test_nesting_of_any_depth_is_refused(client: httpx.Client, depth: int) -> None:
    content = b'{"text": ' + b"[" * depth + b"]" * depth + b"}"
    assert client.post("/similar", content=content, headers=JSON).status_code in (400, 422)


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/predict", {"text": [1] * 9_000}, "text.0"),
        ("/v1/embeddings", {"input": [{}] * 9_000}, "input.0"),
        ("/v2/rerank", {"query": "a", "documents": [{}] * 9_000}, "documents.0.text"),
    ],
)
def test_of_a_long_list_only_the_first_wrong_item_is_described(
    client: httpx.Client, path: str, body: dict[str, Any], place: str
) -> None:
    (found, *_) = client.post(path, json=body).json().values()
    error = found["message"] if path == "/v1/embeddings" else found
    assert error.startswith(f"{place}: ")
    assert ".1: " not in error


def test_the_errors_of_very_many_unknown_fields_are_not_described_one_by_one(client: httpx.Client) -> None:
    body = {"text": "goose"} | {f"field{number}": number for number in range(100)}
    others = "field0: extra inputs are not permitted; .*; and 97 more"
    assert re.match(others, client.post("/similar", json=body).json()["error"])


async def test_a_body_that_breaks_off_gets_a_400(make_app: Callable[..., App]) -> None:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b'{"text": "goose"}', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/similar", "headers": [], "query_string": b""}
    await make_app()(scope, receive, send)
    assert sent[0]["status"] == 400
    assert b"body: broke off after 17 bytes, expected all of it; send it again" in sent[1]["body"]
