"""The command `semsearch mcp`: the tools of POST /mcp over standard input and output, with one message per line.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio. Another process makes the index
of a folder. Meanwhile `initialize` and `tools/list` are answered at once, and tool calls wait for the index.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from threading import Thread

from semsearch.app.freshness import Since
from semsearch.app.mcp.messages import RpcError, RpcId, answer, read_message
from semsearch.app.mcp.tools import Tools
from semsearch.app.reloading.reloader import FolderReloader
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch
from semsearch.engine.bundle import BundleError, is_bundle
from semsearch.engine.tensors import TensorsError
from semsearch.search.executor import Executor

CANCELLED = "notifications/cancelled"
SECONDS_TO_WAIT = 45.0  # maximum time that a call waits for the first index; clients wait 60 seconds for a reply


class Server:
    """Answers messages over a bundle, which another process may still be making."""

    def __init__(
        self,
        bundle: Path,
        error_of_process: Callable[[], str | None] = lambda: "",
        since: Callable[[], Since] | None = None,
    ) -> None:
        """Take the folder of the bundle. since returns what has happened since its index was made, and can take long.

        error_of_process returns why the process that makes the index has failed, "" if nothing is known, or None while
        it runs.
        """
        self._error_of_process, self._since = error_of_process, since
        self._is_new = not is_bundle(bundle)
        self._reloader = FolderReloader(bundle)
        self._tools: Tools | str = "the index is still being made; try again in a minute"
        self._running: dict[RpcId, asyncio.Task[None]] = {}  # the requests that are not answered yet

    async def run(self, messages: int = 0) -> None:
        """Answer the messages of a file descriptor, which is standard input, until it ends."""
        self._opening = asyncio.create_task(self._open())
        await asyncio.sleep(0)  # an existing index is opened before the first message is read
        lines, loop = asyncio.Queue[bytes](), asyncio.get_running_loop()

        def read() -> None:  # runs in a thread, because asyncio cannot read a file
            with open(messages, "rb", closefd=False) as sent:
                for line in chain(sent, [b""]):
                    loop.call_soon_threadsafe(lines.put_nowait, line)

        Thread(target=read, daemon=True).start()
        tasks = set[asyncio.Task[None]]()
        while line := await lines.get():
            tasks.add(task := asyncio.create_task(self._reply(line)))
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks)
        self._reloader.stop()

    async def _open(self) -> None:
        """Wait for the index, and open it. If the process that makes it fails, `_tools` becomes its error."""
        reloader = self._reloader
        while not isinstance(self._tools, Tools):
            failed = self._error_of_process()
            try:
                executor = Executor(reloader.load().embedder)
            except (BundleError, TensorsError) as error:
                if failed is not None:
                    self._tools = failed or str(error)
                    return
                await asyncio.sleep(0.2)
                continue
            reloader.connect(executor, logging.getLogger("semsearch"))
            self._tools = Tools(
                lambda: reloader.of_request().bundle, reloader.search, executor, Settings(), self._since
            )
        reloader.poll_forever()
        if self._is_new:
            print('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}', flush=True)

    async def _reply(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except RpcError as error:
            print(json.dumps(error.answer(error.id)), flush=True)
            return
        if message.method == CANCELLED:
            self._cancel(message.params.get("requestId"))
            return
        task = asyncio.current_task()
        assert task is not None
        self._running[message.id] = task
        try:
            if message.method == "tools/call":
                if self._opening.done() and not isinstance(self._tools, Tools):
                    self._opening = asyncio.create_task(self._open())  # the process may have succeeded since
                await asyncio.wait([self._opening], timeout=SECONDS_TO_WAIT)
            reply, _ = await answer(message, self._tools, Stopwatch())
        finally:
            self._running.pop(message.id, None)
        if reply is not None:
            print(json.dumps(reply), flush=True)

    def _cancel(self, id: object) -> None:
        """Stop a request, which then has no answer. One that is answered already is ignored."""
        if isinstance(id, int | str) and id in self._running:
            self._running[id].cancel()
