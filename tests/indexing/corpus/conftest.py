"""A server that speaks S3, for corpora at an address."""

from tests.stand_ins.fixtures import endpoint, keys, s3, url
