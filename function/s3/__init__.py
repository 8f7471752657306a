"""A bundle in S3: fetched at the start, and replaced while requests run. Imported only if BUNDLE_DIR is s3://…."""
