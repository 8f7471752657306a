"""Search your own texts: the console script `semsearch`, and `from semsearch import Search, index`.

The search itself is in function/, and making an index in export/. What a program does not use is not imported.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.search import Hit, Hits, Search
    from semsearch.tables import index

__all__ = ["Hit", "Hits", "Search", "index"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("semsearch.tables" if name == "index" else "semsearch.search"), name)
