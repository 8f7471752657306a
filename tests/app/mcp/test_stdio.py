"""`semsearch mcp`, message by message: what standard input and output add to POST /mcp."""

import asyncio
import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import count
from pathlib import Path
from threading import current_thread, main_thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from semsearch.app.freshness import Since
from semsearch.app.mcp.messages import UNREAD
from semsearch.app.mcp.stdio import Server
from semsearch.version import VERSION
from tests.app.mcp.test_messages import LEGACY, META, MODERN, message, modern
from tests.server.running import eventually


class Client(io.StringIO):
    """A standard output whose reader gets what is flushed."""

    sent = ""

    def flush(self) -> None:
        self.sent = self.getvalue()


def answers(
    bundle: Path,
    messages: list[dict[str, Any]],
    look: Callable[[], str | None] = lambda: None,
    since: Callable[[], Since] | None = None,
) -> list[dict[str, Any]]:
    """Return what a server prints for these messages. If there is no bundle, it calls `look` until there is one."""
    before = set(enumerate_threads())
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as sent:
        sent.writelines(json.dumps(each).encode() + b"\n" for each in messages)
    try:
        with redirect_stdout(client := Client()):
            asyncio.run(Server(bundle, look, since).run(reader))
    finally:
        os.close(reader)
    assert eventually(lambda: not any(each.name == "poll" for each in set(enumerate_threads()) - before))
    return [json.loads(line) for line in client.sent.splitlines()]


def cancel(request: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}


SEARCH = {"name": "search", "arguments": {"query": "goose"}}


def test_a_cancelled_request_is_not_answered(tmp_path: Path) -> None:
    waiting = [message("tools/call", SEARCH, id=id) for id in (1, "1")]  # they wait for the index
    others: list[object] = [2, None, [1], {}]
    messages = [*waiting, message("ping", id=2), *map(cancel, [1, "1", *others])]
    assert answers(tmp_path / "none", messages) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_requests_that_nobody_cancels_are_answered_and_so_are_invalid_ones(bundle: Path) -> None:
    messages = [message("tools/call", SEARCH, id=1), {"jsonrpc": "2.0", "id": 2}, cancel(3)]
    found = {each["id"]: each for each in answers(bundle, messages)}
    assert found.keys() == {1, 2}
    assert "goose" in found[1]["result"]["content"][0]["text"]
    assert found[2]["error"]["code"] == -32600


INITIALIZED = {"tools": {"listChanged": True}}
SERVER = {"name": "semsearch", "version": VERSION}


def test_what_a_server_answers_whose_index_cannot_be_made(tmp_path: Path) -> None:
    discover, _ = modern("server/discover")
    call, _ = modern("tools/call", SEARCH)
    messages = [message("initialize", id=1), message("tools/list", id=2), discover | {"id": 3}, call | {"id": 4}]
    replies = answers(tmp_path / "none", messages, lambda: "docs: no space")
    found = {each["id"]: each["result"] for each in replies}
    about = {"capabilities": INITIALIZED, "instructions": UNREAD}
    assert found[1] == {"protocolVersion": LEGACY, "serverInfo": SERVER} | about
    tools = found[2].pop("tools")
    assert found[2] == {}
    assert [tool["name"] for tool in tools] == ["search", "fetch", "list_documents"]
    assert tools[0]["description"].endswith(UNREAD)
    of_2026 = {"resultType": "complete", "_meta": {f"{META}serverInfo": SERVER}}
    cached = {"ttlMs": 300_000, "cacheScope": "private"}
    assert found[3] == {"supportedVersions": [MODERN, LEGACY, "2025-06-18"]} | about | of_2026 | cached
    assert found[4] == {"content": [{"type": "text", "text": "docs: no space"}], "isError": True} | of_2026


def test_a_call_looks_again_for_an_index_that_could_not_be_made_before(bundle: Path, tmp_path: Path) -> None:
    copy, looks = Path(shutil.copytree(bundle, tmp_path / "copy")), count()

    def finish_at_the_second_look() -> str:
        if next(looks) == 1:
            copy.rename(tmp_path / "bundle")
        return "docs: no space"

    found = answers(tmp_path / "bundle", [message("tools/call", SEARCH)], finish_at_the_second_look)
    assert [each["result"]["isError"] for each in found if "result" in each] == [False]


def test_without_a_reason_of_the_process_a_missing_index_is_the_error(tmp_path: Path) -> None:
    (found,) = answers(tmp_path / "none", [message("tools/call", SEARCH)], lambda: "")
    assert found["result"]["content"][0]["text"].startswith(f"{tmp_path}/none: is not a folder")


def test_an_index_that_is_finished_while_calls_wait_is_announced_once(bundle: Path, tmp_path: Path) -> None:
    copy, looks = Path(shutil.copytree(bundle, tmp_path / "copy")), count()

    def finish_at_the_third_look() -> None:
        if next(looks) == 2:
            copy.rename(tmp_path / "bundle")

    calls = [message("tools/call", SEARCH, id=id) for id in (1, 2)]
    found = answers(tmp_path / "bundle", calls, finish_at_the_third_look)
    assert [each["method"] for each in found if "method" in each] == ["notifications/tools/list_changed"]
    assert {each["id"] for each in found if "result" in each} == {1, 2}


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (Since(), ""),
        (Since(0), "; files changed since: 0"),
        (Since(1_234, "docs: no space"), "; files changed since: 1,234; error of the last update: docs: no space"),
    ],
)
def test_an_answer_says_what_has_happened_since_the_index_was_made(since: Since, said: str, bundle: Path) -> None:
    threads = []

    def find_out() -> Since:
        threads.append(current_thread())
        return since

    (found,) = answers(bundle, [message("tools/call", SEARCH)], since=find_out)
    assert json.loads(found["result"]["content"][0]["text"])["index"].partition("Z")[2] == said
    assert main_thread() not in threads  # looking at a large folder keeps no other message waiting
