"""POST /predict: embeddings of one text or of several, compared with the embedder's own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.routes.predict import FEW_VALUES
from semsearch.app.routes.replies import bytes_per_text
from semsearch.app.settings import Settings, SettingsError
from semsearch.engine.bundle import Manifest
from semsearch.engine.embedder import Embedder
from tests.world import DIM

TEXTS = ["The goose won", "the ferry", "An old sailor painted the mayor's kitchen door bright yellow"]


def predict(client: httpx.Client, **body: object) -> dict[str, Any]:
    reply = client.post("/predict", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.mark.promise("PredictRequest.text")
def test_several_texts_give_the_embedders_embeddings_in_their_order(client: httpx.Client, embedder: Embedder) -> None:
    found = predict(client, text=TEXTS)
    assert found.keys() == {"embeddings", "truncated"}
    np.testing.assert_array_equal(np.float32(found["embeddings"]), embedder.embed(embedder.tokenize(TEXTS)))


@pytest.mark.promise("PredictRequest.text")
def test_of_many_texts_each_has_the_embedding_that_it_has_alone(client: httpx.Client) -> None:
    many = predict(client, text=["goose"] * (FEW_VALUES // DIM + 1))["embeddings"]
    assert many == predict(client, text="goose")["embeddings"] * (FEW_VALUES // DIM + 1)


@pytest.mark.promise("PredictRequest.text")
def test_one_text_is_embedded_alone_as_in_a_list_and_no_text_is_refused(client: httpx.Client) -> None:
    assert predict(client, text="goose") == predict(client, text=["goose"])
    assert len(predict(client, text="goose")["embeddings"]) == 1
    for wrong, error in (
        ([], "text: list should have at least 1 item after validation, not 0, found []"),
        ("", "text: expected words, not an empty or blank text, found ''"),
        (["goose", " "], "text.1: expected words, not an empty or blank text, found ' '"),
        (None, "text: input should be a valid string, found None"),
    ):
        refused = client.post("/predict", json={"text": wrong})
        assert (refused.status_code, refused.json()) == (422, {"error": error, "error_type": "invalid"})


@pytest.mark.promise("PredictRequest.prompt_name")
def test_a_role_that_there_is_not_is_refused_and_a_model_without_prompts_ignores_both(client: httpx.Client) -> None:
    refused = client.post("/predict", json={"text": "goose", "prompt_name": "passage"})
    error = "prompt_name: input should be 'query' or 'document', found 'passage'"
    assert (refused.status_code, refused.json()["error"]) == (422, error)
    for prompt_name in ("query", "document", None):
        assert predict(client, text="goose", prompt_name=prompt_name) == predict(client, text="goose")


@pytest.mark.promise("PredictRequest.text")
def test_the_reply_says_of_each_text_whether_it_was_cut(client: httpx.Client) -> None:
    texts = ["goose " * 22, "goose " * 23, "goose"]
    assert predict(client, text=texts)["truncated"] == [False, True, False]


@pytest.mark.promise("PredictRequest.prompt_name")
@pytest.mark.parametrize(("prompt_name", "prompt"), [("document", "ferry "), (None, "")])
def test_prompt_name_puts_the_models_prompt_before_each_text(
    connect: Callable[..., httpx.Client],
    client: httpx.Client,
    bundle: Path,
    manifest: Manifest,
    prompt_name: str | None,
    prompt: str,
) -> None:
    model = replace(manifest.model, prompts={"query": "the angry goose ", "document": "ferry "})
    prompted = connect(embedder=Embedder.open(bundle, model))
    expected = predict(client, text=[prompt + text for text in TEXTS])
    assert predict(prompted, text=TEXTS, prompt_name=prompt_name) == expected


@pytest.mark.promise("PredictRequest.prompt_name")
def test_a_bundle_with_a_model_for_queries_alone_refuses_to_embed_documents(
    connect: Callable[..., httpx.Client], bundle: Path, manifest: Manifest
) -> None:
    client = connect(embedder=Embedder.open(bundle, replace(manifest.model, documents="0123456789abcdef")))
    assert len(predict(client, text=TEXTS, prompt_name="query")["embeddings"]) == len(TEXTS)
    refused = client.post("/predict", json={"text": TEXTS, "prompt_name": "document"})
    assert refused.status_code == 422
    assert "found document, expected query: the model for documents is not in this bundle" in refused.text


@pytest.mark.promise("PredictRequest.text")
def test_as_many_texts_and_tokens_are_taken_as_the_settings_say(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_tokens=30, max_texts=2))
    assert client.post("/predict", json={"text": ["goose"] * 3}).status_code == 422
    # each word is a token, and each text has [CLS] and [SEP] around it: 12 + 18, and one more
    taken = ["goose " * 10, "goose " * 16]
    assert len(predict(client, text=taken)["embeddings"]) == 2
    refused = client.post("/predict", json={"text": [*taken[:1], "goose " * 17]})
    assert (refused.status_code, refused.json()) == (
        413,
        {"error": "text: 31 tokens in 2 texts, at most 30; send fewer or shorter texts", "error_type": "too_large"},
    )


@pytest.mark.promise("PredictRequest.text")
def test_as_many_texts_are_taken_as_have_room_in_a_reply(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_reply_bytes=3 * bytes_per_text(DIM)))
    assert len(predict(client, text=["goose"] * 3)["embeddings"]) == 3
    refused = client.post("/predict", json={"text": ["goose"] * 4})
    error = "text: the embeddings of 4 texts do not fit into a reply, expected at most 3; send fewer"
    assert (refused.status_code, refused.json()["error"]) == (413, error)


@pytest.mark.promise("PredictRequest.text", "text")
@pytest.mark.parametrize(("path", "text"), [("/predict", ["q" * 321] * 2), ("/similar", "q" * 641)])
def test_more_characters_than_the_tokens_may_have_are_refused_before_they_are_tokenized(
    connect: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch, path: str, text: str | list[str]
) -> None:
    client = connect(settings=Settings(max_tokens=40))
    fewer = text[1:] if isinstance(text, str) else [text[0], text[1][2:]]
    assert client.post(path, json={"text": fewer}).status_code == 200
    monkeypatch.setattr(Embedder, "tokenize", lambda *_, **__: pytest.fail("it tokenizes"))
    refused = client.post(path, json={"text": text})
    assert refused.status_code == 413
    assert refused.json()["error"].endswith(", at most 640; send fewer or shorter texts")


@pytest.mark.promise("PredictRequest.text")
def test_a_text_as_long_as_the_model_reads_is_always_taken(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(max_tokens=24))
    assert predict(client, text="goose " * 60)["truncated"] == [True]
    with pytest.raises(SettingsError) as caught:
        connect(settings=Settings(max_tokens=23))
    assert str(caught.value) == (
        "MAX_TOKENS: 23, expected 24 or more, since the model reads 24 tokens of one text; set MAX_TOKENS=24"
    )
