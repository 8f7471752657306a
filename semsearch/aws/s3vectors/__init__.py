"""A corpus in Amazon S3 Vectors, queried without boto3. Imported only if the bundle names such a corpus."""
