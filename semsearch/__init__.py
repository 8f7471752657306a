"""Search your own texts by meaning and by words: `from semsearch import Search, index`, and the command `semsearch`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.client import Hit, Hits, Search
    from semsearch.engine.loading import load_bundle
    from semsearch.indexing.make import IndexSummary, index, remove

__all__ = ["Hit", "Hits", "IndexSummary", "Search", "index", "load_bundle", "remove"]

MODULE_OF = {
    **dict.fromkeys(("IndexSummary", "index", "remove"), "indexing.make"),
    "load_bundle": "engine.loading",
}


def __getattr__(name: str) -> Any:
    """Import what is used, when it is used: the function in Lambda needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'semsearch' has no attribute {name!r}")
    return getattr(import_module(f"semsearch.{MODULE_OF.get(name, 'client')}"), name)
