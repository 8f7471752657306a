"""The mcp client, of the newest revision that it speaks and of the one before."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

OWN = "search_stories"  # the tool named after the corpus
MODES = {
    "auto": LATEST_MODERN_VERSION,
    "legacy": LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION: LATEST_MODERN_VERSION,
}


@pytest.fixture(params=MODES)
def ask(address: str, request: pytest.FixtureRequest) -> Callable[[Callable[[Client], Awaitable[Any]]], Any]:
    """Return what connects a client, awaits what a test does with it, and returns that."""

    def run(use: Callable[[Client], Awaitable[Any]]) -> Any:
        async def connect() -> Any:
            async with Client(f"{address}/mcp", mode=request.param) as client:
                assert client.protocol_version == MODES[request.param]
                return await use(client)

        return asyncio.run(connect())

    return run


def test_the_tool_is_listed_with_its_corpus(ask: Callable[..., Any]) -> None:
    tool, *others = ask(lambda client: client.list_tools()).tools
    assert tool.name == OWN
    assert [other.name for other in others] == ["search", "fetch"]
    assert "200 texts of stories.csv" in tool.description
    assert "chapter (number)" in tool.description
    assert {"text", "num_results", "mode", "filter"} <= tool.input_schema["properties"].keys()


def test_ten_calls_in_a_row_find_texts(ask: Callable[..., Any]) -> None:
    async def search(client: Client) -> list[Any]:
        return [await client.call_tool(OWN, {"text": "angry goose", "num_results": n}) for n in range(1, 11)]

    for number, found in enumerate(ask(search), 1):
        assert not found.is_error
        assert len(found.structured_content["results"]) == number
        assert json.loads(found.content[0].text) == found.structured_content


def test_a_filter_limits_the_texts(ask: Callable[..., Any]) -> None:
    arguments = {"text": "goose", "mode": "hybrid", "filter": {"chapter": {"$gte": 3}}}
    found = ask(lambda client: client.call_tool(OWN, arguments))
    assert all(each["metadata"]["chapter"] >= 3 for each in found.structured_content["results"])


def test_a_wrong_call_is_a_result_that_says_why(ask: Callable[..., Any]) -> None:
    found = ask(lambda client: client.call_tool(OWN, {"text": "goose", "filter": {"year": 1}}))
    assert found.is_error
    assert "the columns are: id (string), chapter (number)" in found.content[0].text


def test_an_unknown_tool_is_an_error(ask: Callable[..., Any]) -> None:
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        ask(lambda client: client.call_tool("find", {}))
    error: BaseException = caught.value
    while isinstance(error, ExceptionGroup):  # the client raises one for its tasks
        (error,) = error.exceptions
    assert f"expected one of ['{OWN}', 'search', 'fetch']" in str(error)


def test_a_search_by_a_query_finds_ids_whose_texts_can_be_fetched(ask: Callable[..., Any]) -> None:
    async def search_and_fetch(client: Client) -> tuple[Any, Any]:
        found = (await client.call_tool("search", {"query": "angry goose"})).structured_content["results"]
        return found, (await client.call_tool("fetch", {"id": found[0]["id"]})).structured_content

    found, document = ask(search_and_fetch)
    assert len(found) == 10
    assert all(each.keys() == {"id", "title", "url"} for each in found)
    assert document.keys() == {"id", "title", "text", "url", "metadata"}
    assert "goose" in document["text"]
