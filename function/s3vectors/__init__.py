"""A corpus in Amazon S3 Vectors: asked by signed requests, without boto3. Nothing here is imported without one."""
