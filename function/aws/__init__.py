"""Requests to AWS without boto3, which takes longer to import than everything else in a cold start."""
