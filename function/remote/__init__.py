"""A bundle that comes from S3, and is replaced by a newer one between requests. Imported where BUNDLE_DIR is s3://…."""
