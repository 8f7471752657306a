"""`from semsearch import Search`: search a bundle in this process, or a running function or server by its address."""

from semsearch.client.columns import ColumnSummary
from semsearch.client.hits import Hit, Hits, ManyHits
from semsearch.client.requests import ServerError
from semsearch.client.search import Search

__all__ = ["ColumnSummary", "Hit", "Hits", "ManyHits", "Search", "ServerError"]
