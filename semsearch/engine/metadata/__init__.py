"""Filters over the metadata of a corpus."""
