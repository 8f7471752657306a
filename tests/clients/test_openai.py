"""The clients of OpenAI's embeddings: openai's own, LangChain's and LlamaIndex's."""

import numpy as np
import openai
import pytest
from langchain_openai import OpenAIEmbeddings

TEXTS = ["the goose won", "the ferry", "an old sailor painted the kitchen door"]


@pytest.fixture
def client(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


def test_the_default_format_and_floats_are_the_same_embeddings(client: openai.OpenAI) -> None:
    default = client.embeddings.create(model="any", input=TEXTS)
    floats = client.embeddings.create(model="any", input=TEXTS, encoding_format="float")
    rows = [[one.embedding for one in each.data] for each in (default, floats)]
    np.testing.assert_array_equal(np.array(rows[0], np.float32), np.array(rows[1], np.float32))
    assert default.usage == floats.usage
    assert default.usage.prompt_tokens > len(TEXTS)
    assert default.usage.truncated_texts == 0
    assert client.embeddings.create(model="any", input="goose " * 10_000).usage.truncated_texts == 1


def test_the_model_is_listed_and_retrieved(client: openai.OpenAI) -> None:
    (model,) = client.models.list()
    assert client.models.retrieve(model.id) == model
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt")
    assert caught.value.code == "model_not_found"


def test_errors_are_openais(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="any", input="")
    assert caught.value.param == "input"
    assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.APIStatusError, match="string should have at most 65536 characters") as too_large:
        client.embeddings.create(model="any", input="q" * 70_000)
    assert too_large.value.status_code == 400


def test_langchain_embeds_documents_by_the_thousand(address: str, client: openai.OpenAI) -> None:
    langchain = OpenAIEmbeddings(base_url=f"{address}/v1", api_key="none", check_embedding_ctx_length=False)
    documents = [f"{text} {number}" for number in range(400) for text in TEXTS]
    assert langchain.chunk_size >= 1000
    found = langchain.embed_documents(documents)
    expected = client.embeddings.create(model="any", input=documents).data
    np.testing.assert_array_equal(
        np.array(found, np.float32), np.array([one.embedding for one in expected], np.float32)
    )
    np.testing.assert_array_equal(
        np.array(langchain.embed_query(documents[7]), np.float32), np.array(found[7], np.float32)
    )
