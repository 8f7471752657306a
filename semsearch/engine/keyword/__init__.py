"""Search by words: terms, and BM25 over memory-mapped postings."""
