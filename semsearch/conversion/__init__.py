"""A sentence-transformer becomes an 8-bit graph and a tokenizer."""
