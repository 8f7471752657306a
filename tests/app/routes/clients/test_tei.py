"""The routes of text-embeddings-inference: bare lists, the model's truncation, and what POST / takes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.settings import Settings
from semsearch.engine.bundle import Manifest
from semsearch.engine.embedder import Embedder

TEXTS = ["The goose won", "the ferry", "An old sailor painted the mayor's kitchen door bright yellow"]
PAIR = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}


def post(client: httpx.Client, path: str, **body: object) -> Any:
    reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def error(client: httpx.Client, path: str, status: int, **body: object) -> str:
    reply = client.post(path, json=body)
    assert (reply.status_code, reply.json().keys()) == (status, {"error", "error_type"}), reply.text
    return str(reply.json()["error"])


@pytest.mark.promise("EmbedRequest.inputs")
@pytest.mark.parametrize("path", ["/embed", "/"])
def test_embeddings_are_a_bare_list_with_the_bits_of_the_model(
    client: httpx.Client, embedder: Embedder, path: str
) -> None:
    expected = embedder.embed(embedder.tokenize(TEXTS))
    np.testing.assert_array_equal(np.float32(post(client, path, inputs=TEXTS)), expected)
    np.testing.assert_array_equal(np.float32(post(client, path, inputs=TEXTS[0])), expected[:1])


@pytest.mark.promise("EmbedRequest.truncate", "SimilarityRequest.parameters")
def test_a_long_text_is_truncated_unless_that_is_forbidden(client: httpx.Client) -> None:
    long = "goose " * 30
    assert post(client, "/embed", inputs=long) == post(client, "/embed", inputs=long, truncate=True)
    assert post(client, "/embed", inputs="goose " * 22, truncate=False)
    expected = "more tokens than the model reads, with truncate false, expected at most 24"
    refused = error(client, "/embed", 422, inputs=["goose", long], truncate=False)
    assert refused == f"inputs.1: {expected}; shorten the text, or let it be truncated"
    sentences = {"source_sentence": long, "sentences": ["goose"]}
    assert "inputs.0: more" in error(client, "/similarity", 422, inputs=sentences, parameters={"truncate": False})


@pytest.mark.promise("EmbedRequest.normalize", "EmbedRequest.truncation_direction")
def test_embeddings_that_are_no_unit_vectors_cannot_be_had(client: httpx.Client) -> None:
    refused = error(client, "/embed", 422, inputs="goose", normalize=False)
    assert refused == "normalize: input should be True, found False"
    assert "truncation_direction: " in error(client, "/embed", 422, inputs="goose", truncation_direction="left")


@pytest.mark.promise("SimilarityRequest.inputs", "Sentences.source_sentence", "Sentences.sentences")
@pytest.mark.parametrize("path", ["/similarity", "/"])
def test_similarity_is_the_cosine_to_each_sentence(client: httpx.Client, embedder: Embedder, path: str) -> None:
    source, *others = embedder.embed(embedder.tokenize(TEXTS))
    np.testing.assert_allclose(post(client, path, inputs=PAIR), [other @ source for other in others], rtol=1e-6)


@pytest.mark.promise("EmbedRequest.prompt_name", "SimilarityRequest.parameters", "TokenizeRequest.prompt_name")
def test_prompts_are_put_before_texts(connect: Callable[..., httpx.Client], bundle: Path, manifest: Manifest) -> None:
    prompts = {"query": "the angry goose ", "document": "ferry "}
    client = connect(embedder=Embedder.open(bundle, replace(manifest.model, prompts=prompts)))
    prompted = [prompts["query"] + text for text in TEXTS]
    assert post(client, "/embed", inputs=TEXTS, prompt_name="query") == post(client, "/embed", inputs=prompted)
    asked = post(client, "/similarity", inputs=PAIR, parameters={"prompt_name": "query"})
    assert asked == post(client, "/similarity", inputs={"source_sentence": prompted[0], "sentences": prompted[1:]})
    (tokens,) = post(client, "/tokenize", inputs="goose", prompt_name="document")
    assert [one["text"] for one in tokens] == ["[CLS]", "ferry", "goose", "[SEP]"]


@pytest.mark.promise("TokenizeRequest.inputs", "TokenizeRequest.add_special_tokens")
@pytest.mark.parametrize("text", ["Żółć, naïve café, 東京, 🦆.", " ", "goose " * 10_000])
def test_tokens_are_the_tokenizers_and_name_their_characters(
    client: httpx.Client, embedder: Embedder, text: str
) -> None:
    (tokens,) = post(client, "/tokenize", inputs=text)
    whole = Embedder(embedder._tokenizer.from_str(embedder._tokenizer.to_str()), embedder._session, embedder.model)
    whole._tokenizer.no_truncation()
    encoding = whole._tokenizer.encode(text)
    assert [one["id"] for one in tokens] == encoding.ids
    assert [one["special"] for one in tokens] == [bool(each) for each in encoding.special_tokens_mask]
    for one, offsets in zip(tokens, encoding.offsets, strict=True):
        if one["special"]:
            assert (one["start"], one["stop"]) == (None, None)
        else:
            assert (one["start"], one["stop"]) == offsets
            assert one["text"] == text[one["start"] : one["stop"]]
    assert post(client, "/tokenize", inputs=[text], add_special_tokens=False) == [tokens[1:-1]]


@pytest.mark.promise("EmbedRequest.inputs", "Sentences.sentences")
@pytest.mark.parametrize("path", ["/embed", "/similarity"])
def test_nothing_to_embed_is_a_400_and_what_is_invalid_a_422(client: httpx.Client, path: str) -> None:
    empty: object = {"source_sentence": "goose", "sentences": []} if path == "/similarity" else []
    assert "should have at least 1 item" in error(client, path, 400, inputs=empty)
    assert error(client, path, 422, inputs=3).startswith("inputs: ")
    several = {"source_sentence": "goose", "sentences": [1, 2]} if path == "/similarity" else [1, 2]
    first = "inputs.sentences.0" if path == "/similarity" else "inputs.0"
    assert error(client, path, 422, inputs=several) == f"{first}: input should be a valid string, found 1"
    assert error(client, path, 422) == "inputs: field required"


@pytest.mark.promise("Sentences.source_sentence")
def test_the_source_sentence_counts_as_a_text(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_texts=3, max_tokens=30))
    assert len(post(client, "/similarity", inputs={"source_sentence": "a", "sentences": ["b", "c"]})) == 2
    inputs = {"source_sentence": "a", "sentences": ["b", "c", "d"]}
    assert "inputs: 4 texts, at most 3" in error(client, "/similarity", 422, inputs=inputs)
    inputs = {"source_sentence": "goose " * 10, "sentences": ["goose " * 17]}
    assert "31 tokens in 2 texts" in error(client, "/similarity", 413, inputs=inputs)


@pytest.mark.promise("TokenizeRequest.inputs")
def test_the_tokens_of_tokenize_are_limited_before_all_texts_are_read(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_tokens=30))
    assert len(post(client, "/tokenize", inputs=["goose " * 14, "goose " * 12])[1]) == 14
    assert "31 tokens in 3 texts, at most 30" in error(
        client, "/tokenize", 413, inputs=["goose " * 14, "goose " * 13, "goose"]
    )
