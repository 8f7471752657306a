"""Search your own texts: the console script `semsearch`, and `from semsearch import Search, index`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.client import Hit, Hits, Search
    from semsearch.indexing.watching import index

__all__ = ["Hit", "Hits", "Search", "index"]


def __getattr__(name: str) -> Any:  # imports lazily, because `python -m semsearch` changes sys.path first
    return getattr(import_module("semsearch.indexing.watching" if name == "index" else "semsearch.client"), name)
