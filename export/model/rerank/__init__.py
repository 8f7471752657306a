"""A cross-encoder becomes the reranker of a bundle."""
