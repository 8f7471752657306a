"""semsearch mcp: the tools of POST /mcp over standard input and output, a message a line.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio. While another process makes the
index of a folder, `initialize` and `tools/list` are answered at once, and calls wait for the index.
"""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path

from function.commands.terminal import fail
from function.engine.bundle import BundleError
from function.engine.tensors import TensorsError
from function.executor import Executor
from function.reloading import FolderReloader
from function.routes.clients.mcp import RpcError, answer, check_version, error_content, read_message
from function.routes.clients.mcp_tools import Object, Tools, failed
from function.settings import Settings
from semsearch.places import bundle_of, is_bundle
from semsearch.watching import start

LONGEST_MESSAGE = 2**20  # bytes
SECONDS_TO_WAIT = 45.0  # maximum wait of a call for the first index; clients wait for a minute


def serve(path: Path, *, watch: bool) -> int:
    """Answer messages until standard input ends, and return the exit code."""
    if not path.exists() or (watch and is_bundle(path)):
        return fail(f"{path}: expected a folder of documents{'' if watch else ', or a bundle'}; check the path")
    bundle = bundle_of(path)
    process = None if bundle == path else start(path, bundle, watch=watch)
    try:
        asyncio.run(_Server(bundle, process).run())
    finally:
        if process is not None:
            process.terminate()
    return 0


class _Server:
    def __init__(self, bundle: Path, process: "subprocess.Popen[bytes] | None") -> None:
        self._bundle, self._process = bundle, process
        self._tools: Tools | None = None
        self._error = "the index is still being made; try again in a minute"

    async def run(self) -> None:
        opening = asyncio.create_task(self._open())
        await asyncio.sleep(0)  # an index that is there is opened before the first message
        tasks = {opening}
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)  # a thread that waits for a line could not be stopped
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while line := await reader.readline():
            tasks.add(task := asyncio.create_task(self._reply(line, opening)))
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks - {opening})

    async def _open(self) -> None:
        """Open the index when it is there."""
        is_new = not is_bundle(self._bundle)
        while not is_bundle(self._bundle):
            if self._process is not None and self._process.poll() is not None:
                self._error = self._process.communicate()[0].decode(errors="replace") or "the index could not be made"
                return
            await asyncio.sleep(0.2)
        reloader = FolderReloader(self._bundle)
        try:
            executor = Executor(reloader.load().embedder)
        except (BundleError, TensorsError) as error:
            self._error = str(error)
            return
        reloader.connect(executor, logging.getLogger("semsearch"))
        self._tools = Tools(lambda: reloader.of_request().bundle, reloader.search, executor, Settings())
        reloader.poll_forever()
        if is_new:
            _send({"method": "notifications/tools/list_changed"})

    async def _reply(self, line: bytes, opening: "asyncio.Task[None]") -> None:
        message = None
        try:
            message = read_message(line)
            is_modern = check_version(message, None)
            if message.method == "tools/call" and self._tools is None:
                await asyncio.wait([opening], timeout=SECONDS_TO_WAIT)
            if message.method == "tools/call" and self._tools is None:
                _send({"id": message.id, "result": failed(self._error)})
            elif not message.is_notification():
                _send({"id": message.id, "result": await answer(message, self._tools, is_modern, changes=True)})
        except RpcError as error:
            _send(error_content(message, error))


def _send(message: Object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
