"""A bundle in S3, fetched and replaced by a newer one between requests. Imported only where BUNDLE_DIR is s3://…."""
