"""Bundles in S3: published, listed, switched back, pruned."""
