"""A corpus becomes embeddings, an index, keywords and columns, and the bundle is verified."""
