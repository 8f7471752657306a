"""Search your own texts: the console script `semsearch`, and `from semsearch import Search, index`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.search import Hit, Hits, Search
    from semsearch.tables import index

__all__ = ["Hit", "Hits", "Search", "index"]


def __getattr__(name: str) -> Any:  # so that the command and `Search` import only what they use
    if name in __all__:
        return getattr(import_module("semsearch.tables" if name == "index" else "semsearch.search"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
