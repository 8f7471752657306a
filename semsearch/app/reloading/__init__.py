"""Serve one bundle after another: of a folder, or of a pointer in S3."""
