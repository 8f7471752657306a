"""Real clients with an API key, and with another one, against a function with ApiKeyHashes."""

import asyncio
import json

import httpx
import openai
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from langchain_openai import OpenAIEmbeddings
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.clients.conftest import KEY

WRONG = KEY[:-1] + "0"


def embed_by_openai(address: str, key: str) -> int:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)
    return len(client.embeddings.create(model="any", input=["the goose won"]).data)


def embed_by_langchain(address: str, key: str) -> int:
    options = {"check_embedding_ctx_length": False, "max_retries": 0}
    return len(OpenAIEmbeddings(base_url=f"{address}/v1", api_key=key, model="any", **options).embed_documents(["a"]))


def embed_by_huggingface(address: str, key: str) -> int:
    return len(InferenceClient(model=address, token=key).feature_extraction(["the goose won"]))


@pytest.mark.parametrize("ask", [embed_by_openai, embed_by_langchain, embed_by_huggingface])
def test_a_client_is_answered_with_the_key_alone(ask: object, closed: str) -> None:
    assert ask(closed, KEY) == 1  # type: ignore[operator]
    with pytest.raises((openai.AuthenticationError, HfHubHTTPError), match="401"):
        ask(closed, WRONG)  # type: ignore[operator]


def test_the_mcp_client_is_answered_with_the_key(closed: str) -> None:
    async def search() -> list[object]:
        headers = {"authorization": f"Bearer {KEY}"}
        async with (
            httpx.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{closed}/mcp", http_client=http)) as client,
        ):
            found = await client.call_tool("search_stories", {"text": "goose", "num_results": 1})
            results: list[object] = json.loads(found.content[0].text)["results"]
            return results

    assert len(asyncio.run(search())) == 1
