"""A search without a server."""

from function.engine.loading import Loaded
from function.executor import InlineExecutor
from function.search.query import Found, Query
from function.search.search import make_search


def find(bundle: Loaded, query: Query) -> Found:
    """Return what a query finds in a bundle."""
    coroutine = make_search(bundle, InlineExecutor(bundle.embedder))(query, lambda phase: None)
    try:
        coroutine.__await__().send(None)
    except StopIteration as finished:
        found: Found = finished.value
        return found
    raise AssertionError("an InlineExecutor does not wait")
