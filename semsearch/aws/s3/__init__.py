"""A bundle in S3 is fetched at the start and can be replaced while requests run. Imported only if BUNDLE_DIR is s3://."""
