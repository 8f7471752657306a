"""The command `semsearch mcp`: an MCP server for agents on standard input and output."""

import asyncio
from functools import partial
from pathlib import Path

from cyclopts import App

from semsearch.app.freshness import Since
from semsearch.app.mcp.stdio import Server
from semsearch.app.shared_memory import SharedFailures
from semsearch.commands.options import NONE_STATED, FolderOptions
from semsearch.commands.places import FolderIndex, PlaceError, count_changes, refuse_for_bundle
from semsearch.engine.bundle import is_bundle

EXAMPLES = """\
Examples:

    semsearch mcp docs/ --watch
    semsearch mcp docs/ notes/ --watch --describe notes="minutes of meetings"
    semsearch mcp notes/ --exclude "private/*"
    semsearch install-mcp claude-code docs/
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def mcp(*places: Path, watch: bool = False, options: FolderOptions = NONE_STATED) -> None:
    """Run an MCP server for agents on standard input and output.

    Args:
        places: a bundle, or folders of documents, whose index is made or updated first and kept in a cache.
        watch: update the index when files change.
    """
    refuse_for_bundle(places, options, watch=watch)
    if not any(place.exists() for place in places):
        expected = "a folder of documents, or a bundle"
        if watch:
            expected = "a folder of documents"
        raise PlaceError(f"{', '.join(map(str, places)) or 'mcp'}: expected {expected}; check the path")
    if is_bundle(places[0]):
        asyncio.run(Server(places[0]).run())
        return
    index = FolderIndex.kept(places, options)
    updates = SharedFailures()

    def since() -> Since:
        if watch:
            return Since(updates.waiting or None, updates.error or "")
        return Since(count_changes(index.states(), index.known_states()), updates.error or index.missing())

    server = Server(index.bundle, since=since)
    if watch or index.known_states() != index.states():
        from semsearch.commands.watching import IndexProcess  # unchanged documents do not need it

        process = IndexProcess(index, watch=watch)  # ends with this process
        updates = process.updates
        server = Server(index.bundle, partial(process.error_of_first, 0), since)
    asyncio.run(server.run())
