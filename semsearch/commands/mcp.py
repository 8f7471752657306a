"""The command `semsearch mcp`: an MCP server for agents on standard input and output."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cyclopts import App

from semsearch.app.freshness import Since
from semsearch.app.mcp.stdio import Server
from semsearch.app.shared_memory import SharedFailures
from semsearch.commands.places import (
    PlaceError,
    count_changes,
    file_states,
    kept_index,
    read_states,
    refuse_for_bundle,
)
from semsearch.engine.bundle import is_bundle

EXAMPLES = """\
Examples:

    semsearch mcp docs/ --watch
    semsearch mcp notes/ --exclude "private/*"
    semsearch install-mcp claude-code docs/
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def mcp(place: Path, /, *, watch: bool = False, exclude: Sequence[str] = (), include: Sequence[str] = ()) -> None:
    """Run an MCP server for agents on standard input and output.

    Args:
        place: a bundle, or a folder of documents, whose index is made or updated first and kept in a cache.
        watch: update the index when files change.
        exclude: leave out documents whose path ends in this form, such as secrets/*; can be repeated.
        include: read files of other suffixes too, as plain text, whose path ends in this form, such as *.py; can be
            repeated.
    """
    refuse_for_bundle(place, watch=watch, exclude=exclude, include=include)
    if not place.exists():
        expected = "a folder of documents, or a bundle"
        if watch:
            expected = "a folder of documents"
        raise PlaceError(f"{place}: expected {expected}; check the path")
    if is_bundle(place):
        asyncio.run(Server(place).run())
        return
    bundle = kept_index(place, exclude, include)
    updates = SharedFailures()

    def since() -> Since:
        if watch:
            return Since(updates.waiting or None, updates.error or "")
        return Since(
            count_changes(file_states(place, bundle, exclude, include), read_states(bundle)), updates.error or ""
        )

    server = Server(bundle, since=since)
    if watch or read_states(bundle) != file_states(place, bundle, exclude, include):
        from semsearch.commands.watching import IndexProcess  # unchanged documents do not need it

        process = IndexProcess(place, bundle, watch=watch, exclude=exclude, include=include)  # ends with this process
        updates = process.updates
        server = Server(bundle, partial(process.error_of_first, 0), since)
    asyncio.run(server.run())
