"""Search by meaning: an embedding to hits, over memory-mapped rows."""
