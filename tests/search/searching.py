"""Searches without a server."""

from collections.abc import Callable

from semsearch.engine.loading import AnyBundle
from semsearch.search.executor import Executor, Returned, finish
from semsearch.search.making import make_search
from semsearch.search.query import Query
from semsearch.search.results import Found


def find(bundle: AnyBundle, query: Query) -> Found:
    """Return what a query finds in a bundle."""
    return finish(make_search(bundle, Executor(bundle.embedder))(query, lambda phase: None))


def steps_of(bundle: AnyBundle, query: Query) -> list[int | str | None]:
    """Return the steps of a search: how many rows each piece of work reads, None for any number, and the phases."""
    steps: list[int | str | None] = []

    class Watched(Executor):
        async def run(self, work: Callable[[], Returned], *, rows: int | None = None) -> Returned:
            steps.append(rows)
            return await super().run(work, rows=rows)

    finish(make_search(bundle, Watched(bundle.embedder))(query, steps.append))
    return steps
