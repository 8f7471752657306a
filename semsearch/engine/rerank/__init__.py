"""The reranker of a bundle, and the order of texts by its scores and those of the search."""
