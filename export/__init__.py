"""Offline work: a sentence-transformer and a file of texts become a bundle."""
