"""Requests to AWS without boto3: bundles from S3, and searches in S3 Vectors."""
