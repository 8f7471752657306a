"""Retrievers of LangChain, LlamaIndex and Haystack over `semsearch.Search`. Each needs its own library."""

from pathlib import Path
from typing import TypeVar

from semsearch.client import Search

Searcher = TypeVar("Searcher")


def as_search(searcher: Searcher | str | Path) -> Searcher | Search:
    """Return a Search of a folder or an address, and a Search as it is."""
    if isinstance(searcher, str | Path):
        return Search(searcher)
    return searcher
