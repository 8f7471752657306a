"""Lambda lets no reply of more than 6 MB through: the caller is told what to ask for instead, before it is a 5xx."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.routes.clients.openai import base64_texts
from semsearch.app.routes.replies import bytes_per_text, embedding_texts
from semsearch.app.settings import Settings
from semsearch.engine.embedder import Embedder

REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "similar": ("/similar", {"text": "ferry", "num_results": 2}, "num_results: the reply with 2 is {}; ask for fewer"),
    "similar, one": (
        "/similar",
        {"text": "goose", "num_results": 1},
        "num_results: the reply with 1 is {}; split the long texts of the corpus",
    ),
    "tokenize": ("/tokenize", {"inputs": ["ferry", "key"]}, "inputs: the reply to 2 texts is {}; send fewer"),
}


@pytest.mark.promise("num_results", "TokenizeRequest.inputs")
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_reply_at_the_limit_is_given_and_one_of_a_byte_more_refused(
    client: httpx.Client, connect: Callable[..., httpx.Client], kind: str
) -> None:
    path, body, message = REQUESTS[kind]
    whole = client.post(path, json=body)
    limit = len(json.dumps(whole.text))  # as a string of JSON in ASCII, the longest form of Lambda's runtimes
    assert limit > len(whole.content)
    assert connect(settings=Settings(max_reply_bytes=limit)).post(path, json=body).content == whole.content
    refused = connect(settings=Settings(max_reply_bytes=limit - 1)).post(path, json=body)
    error = message.format(f"{limit} bytes, at most {limit - 1}")
    assert (refused.status_code, refused.json()) == (413, {"error": error, "error_type": "too_large"})


# the body for a number of texts, and how many embeddings of 48 values fit into 8,000 bytes
EMBEDDINGS: dict[str, tuple[str, Callable[[list[str]], dict[str, Any]], int]] = {
    "predict": ("/predict", lambda texts: {"text": texts}, 9),
    "embed": ("/embed", lambda texts: {"inputs": texts}, 9),
    "the first values": ("/embed", lambda texts: {"inputs": texts, "dimensions": 8}, 36),
    "openai": ("/v1/embeddings", lambda texts: {"input": texts}, 9),
    "base64": ("/v1/embeddings", lambda texts: {"input": texts, "encoding_format": "base64"}, 22),
}


@pytest.mark.promise("PredictRequest.text", "EmbedRequest.inputs", "EmbedRequest.dimensions", "EmbeddingsRequest.input")
@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_embeddings_that_do_not_fit_into_a_reply_are_refused_before_they_are_made(
    connect: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path, body_of, most = EMBEDDINGS[kind]
    client = connect(settings=Settings(max_reply_bytes=8_000))
    info = client.get("/info").json()
    assert info["limits"]["embeddings"] == info["max_client_batch_size"] == 9
    assert client.post(path, json=body_of(["ferry"] * most)).status_code == 200
    monkeypatch.setattr(Embedder, "tokenize", lambda *_, **__: pytest.fail("it tokenizes"))
    refused = client.post(path, json=body_of(["ferry"] * (most + 1)))
    assert refused.status_code == 413
    found = f": the embeddings of {most + 1} texts do not fit into a reply, expected at most {most}; send fewer"
    assert found in refused.text


def test_a_text_takes_at_most_the_bytes_that_are_counted_for_it() -> None:
    rng = np.random.default_rng(7)
    for dim in (8, 48, 384, 4096):
        embeddings = rng.standard_normal((200, dim)).astype(np.float32)
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        assert max(map(len, embedding_texts(embeddings))) <= bytes_per_text(dim)
        row = {"object": "embedding", "index": 9_999, "embedding": base64_texts(embeddings)[0]}
        assert len(json.dumps(json.dumps(row))) <= bytes_per_text(dim, is_base64=True)
