"""Retrievers of LangChain, LlamaIndex and Haystack over `semsearch.Search`. Each needs its own library."""
