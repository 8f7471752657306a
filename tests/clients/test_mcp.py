"""The mcp client, of the newest revision that it speaks and of the one before."""

import asyncio
import json
import subprocess
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


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_are_listed_a_wrong_call_says_why_and_found_ids_can_be_fetched(address: str, mode: str) -> None:
    async def use() -> tuple[Any, ...]:
        async with Client(f"{address}/mcp", mode=mode) as client:
            assert client.protocol_version == MODES[mode]
            tools = (await client.list_tools()).tools
            wrong = await client.call_tool(OWN, {"text": "goose", "filter": {"year": 1}})
            found = content_of(await client.call_tool("search", {"query": "angry goose"}))["results"]
            return tools, wrong, found, content_of(await client.call_tool("fetch", {"id": found[0]["id"]}))

    (own, *others), wrong, found, document = asyncio.run(use())
    assert [tool.name for tool in (own, *others)] == [OWN, "search", "fetch"]
    assert "200 texts of stories.csv" in own.description
    assert "chapter (number)" in own.description
    assert {"text", "num_results", "mode", "filter"} <= own.input_schema["properties"].keys()
    assert wrong.is_error
    assert "the columns are: id (string), chapter (number)" in wrong.content[0].text
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
