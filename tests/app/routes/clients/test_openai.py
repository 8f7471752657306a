"""OpenAI's routes: the same floats as /predict to the last bit, the tokenizer's counts, OpenAI's errors."""

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.settings import Settings
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Embeddings

TEXTS = ["The goose won", "the ferry", "An old sailor painted the mayor's kitchen door bright yellow"]


def post(client: httpx.Client, **body: object) -> dict[str, Any]:
    reply = client.post("/v1/embeddings", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def embeddings(client: httpx.Client, **body: object) -> Embeddings:
    return np.array([one["embedding"] for one in post(client, **body)["data"]], np.float32)


def error(client: httpx.Client, status: int, **body: object) -> dict[str, Any]:
    content = json.dumps(body)
    reply = client.post("/v1/embeddings", content=content, headers={"content-type": "application/json"})
    assert reply.status_code == status, reply.text
    assert reply.json().keys() == {"error"}
    found: dict[str, Any] = reply.json()["error"]
    assert found.keys() == {"message", "type", "param", "code"}
    return found


@pytest.mark.promise("EmbeddingsRequest.input", "EmbeddingsRequest.encoding_format")
def test_floats_and_base64_hold_the_bits_of_the_model(client: httpx.Client, embedder: Embedder) -> None:
    expected = embedder.embed(embedder.tokenize(TEXTS))
    np.testing.assert_array_equal(embeddings(client, input=TEXTS, model="any"), expected)
    coded = post(client, input=TEXTS, model="any", encoding_format="base64")["data"]
    decoded = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in coded]
    np.testing.assert_array_equal(decoded, expected)


@pytest.mark.promise("EmbeddingsRequest.model")
def test_the_reply_has_openais_fields_and_the_tokenizers_count(client: httpx.Client, embedder: Embedder) -> None:
    found = post(client, input=TEXTS, model="text-embedding-3-small", user="somebody", unknown=1)
    assert found.keys() == {"object", "data", "model", "usage"}
    assert (found["object"], found["model"]) == ("list", "tests/mean-of-words")
    assert [(one["object"], one["index"]) for one in found["data"]] == [("embedding", row) for row in range(3)]
    count = sum(len(one.ids) for one in embedder.tokenize(TEXTS))
    assert found["usage"] == {"prompt_tokens": count, "total_tokens": count, "truncated_texts": 0}


@pytest.mark.promise("EmbeddingsRequest.input")
@pytest.mark.parametrize(
    ("words", "truncated"), [(22, 0), (23, 1), (10_000, 1)]
)  # the model reads 24, with [CLS] and [SEP]
def test_texts_that_were_truncated_are_counted(client: httpx.Client, words: int, truncated: int) -> None:
    found = post(client, input=["goose " * words, "the ferry"])["usage"]
    assert (found["prompt_tokens"], found["truncated_texts"]) == (min(words + 2, 24) + 4, truncated)


@pytest.mark.promise("EmbeddingsRequest.dimensions")
def test_dimensions_keep_the_first_values_as_a_unit_vector(client: httpx.Client) -> None:
    whole, short = embeddings(client, input=TEXTS), embeddings(client, input=TEXTS, dimensions=7)
    assert short.shape == (3, 7)
    np.testing.assert_allclose(short, whole[:, :7] / np.linalg.norm(whole[:, :7], axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(embeddings(client, input=TEXTS, dimensions=48), whole)


TOKEN_IDS = "input: expected texts, because token ids of OpenAI's models mean other words here; with LangChain, set "


@pytest.mark.promise("EmbeddingsRequest.input", "EmbeddingsRequest.dimensions")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"input": [5]}, TOKEN_IDS),
        ({"input": ["a", 5]}, "input.1: input should be a valid string, found 5"),
        ({"input": "a", "dimensions": 0}, "dimensions: input should be greater than or equal to 1"),
        ({"input": ""}, "input: string should have at least 1 character"),
        ({"input": ["a", ""]}, "input.1: string should have at least 1 character"),
        ({"input": [[5], [6, 7]]}, TOKEN_IDS),
        ({"input": "\ud800"}, "input: "),
        ({"input": []}, "input: list should have at least 1 item"),
        ({"input": 5}, "input: input should be a valid string"),
        ({"input": "a", "dimensions": 49}, "dimensions: "),
    ],
)
def test_what_is_invalid_is_a_400_that_names_the_parameter(
    client: httpx.Client, body: dict[str, object], message: str
) -> None:
    found = error(client, 400, **body)
    assert (found["type"], found["param"], found["code"]) == (
        "invalid_request_error",
        message.partition(":")[0].partition(".")[0],
        None,
    )
    assert found["message"].startswith(message)


def test_limits_are_told_as_openai_tells_errors(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_tokens=30, max_reply_bytes=3_000, max_body_bytes=5_000))
    assert "31 tokens in 2 texts, at most 30" in error(client, 413, input=["goose " * 10, "goose " * 17])["message"]
    assert "481 characters in 1 text, at most 480" in error(client, 413, input="q" * 481)["message"]
    assert "the embeddings of 5 texts do not fit" in error(client, 413, input=["a"] * 5)["message"]
    assert "body: 6" in error(client, 413, input="q" * 6_000)["message"]


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "code"),
    [
        ("POST", "/v1/embeddings", b"{", 400, None),
        ("GET", "/v1/embeddings", None, 405, None),
        ("GET", "/v1/completions", None, 404, None),
        ("GET", "/v1/models/gpt", None, 404, "model_not_found"),
    ],
)
def test_every_refusal_under_v1_has_openais_shape(
    client: httpx.Client, method: str, path: str, content: bytes | None, status: int, code: str | None
) -> None:
    reply = client.request(method, path, content=content, headers={"content-type": "application/json"})
    found = reply.json()["error"]
    assert (reply.status_code, found["type"], found["code"]) == (status, "invalid_request_error", code)
    if status == 405:
        assert reply.headers["allow"] == "POST"


def test_a_content_type_and_a_crash_under_v1_have_openais_shape(
    connect: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    reply = client.post("/v1/embeddings", content=b"{}")
    assert (reply.status_code, reply.json()["error"]["type"]) == (415, "invalid_request_error")
    monkeypatch.setattr(Embedder, "embed", lambda *_: 1 / 0)
    assert error(client, 500, input="goose")["type"] == "server_error"


def test_the_model_is_listed_and_found_by_its_name(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()
    (model,) = listed["data"]
    assert listed["object"] == "list"
    expected = {"object": "model", "created": 0, "owned_by": "sentence-transformers"}
    assert model == {"id": "tests/mean-of-words"} | expected
    refused = client.get("/v1/models/gpt").json()["error"]
    assert refused["message"] == "model: found 'gpt', expected 'tests/mean-of-words'"
    for name in ("tests/mean-of-words", "tests%2Fmean-of-words"):  # openai's client writes the slash so
        assert client.get(f"/v1/models/{name}").json() == model
