"""The mcp client, of the newest revision that it speaks and of the one before."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.clients.conftest import PYTHON
from tests.project import ROOT

OWN = "search_stories"  # the tool named after the corpus
MODES = {
    "auto": LATEST_MODERN_VERSION,
    "legacy": LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION: LATEST_MODERN_VERSION,
}


def content_of(found: Any) -> Any:
    """Return what a tool returned: JSON in a text."""
    return json.loads(found.content[0].text)


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


def test_a_wrong_call_is_a_result_that_says_why(ask: Callable[..., Any]) -> None:
    found = ask(lambda client: client.call_tool(OWN, {"text": "goose", "filter": {"year": 1}}))
    assert found.is_error
    assert "the columns are: id (string), chapter (number)" in found.content[0].text


def test_a_search_by_a_query_finds_ids_whose_texts_can_be_fetched(ask: Callable[..., Any]) -> None:
    async def search_and_fetch(client: Client) -> tuple[Any, Any]:
        found = content_of(await client.call_tool("search", {"query": "angry goose"}))["results"]
        return found, content_of(await client.call_tool("fetch", {"id": found[0]["id"]}))

    found, document = ask(search_and_fetch)
    assert len(found) == 10
    assert all(each.keys() == {"id", "title", "url", "snippet"} for each in found)
    assert document.keys() == {"id", "title", "text", "url", "metadata", "index"}
    assert "goose" in document["text"]


def test_semsearch_mcp_answers_over_standard_input_and_output() -> None:
    async def use(folder: str) -> tuple[list[str], Any, Any]:
        command = StdioServerParameters(command=str(PYTHON), args=["-P", "-m", "semsearch", "mcp", folder])
        async with Client(stdio_client(command)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = content_of(await client.call_tool("search", {"query": "angry goose"}))["results"]
            return names, found, content_of(await client.call_tool("fetch", {"id": found[0]["id"]}))

    with TemporaryDirectory() as folder:
        write = "from pathlib import Path; from tests.world import *; write_bundle(Path(sys.argv[1]), make_stories())"
        subprocess.run([PYTHON, "-c", f"import sys; {write}", f"{folder}/bundle"], cwd=ROOT, check=True)
        names, found, document = asyncio.run(use(f"{folder}/bundle"))
    assert names == [OWN, "search", "fetch"]
    assert "goose" in found[0]["snippet"]
    assert "goose" in document["text"]
