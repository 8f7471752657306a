"""Searches without a server."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, load
from semsearch.search.executor import Executor, Returned, finish
from semsearch.search.making import make_search
from semsearch.search.query import Query
from semsearch.search.results import Found

Run = Callable[[Query], Coroutine[Any, Any, Found]]


def find(bundle: AnyBundle, query: Query) -> Found:
    """Return what a query finds in a bundle."""
    return finish(make_search(bundle, Executor(bundle.embedder))(query, lambda phase: None))


def watched_search(bundle: Path, embedder: Embedder) -> tuple[Run, list[int | None]]:
    """Return a search, and a list to which it adds the number of rows that each piece of its work reads."""
    rows_read: list[int | None] = []

    class Watched(Executor):
        async def run(self, work: Callable[[], Returned], *, rows: int | None = None) -> Returned:
            rows_read.append(rows)
            return await super().run(work, rows=rows)

    search = make_search(load(bundle, embedder), Watched(embedder))

    async def run(query: Query) -> Found:
        return await search(query, lambda phase: None)

    return run, rows_read
