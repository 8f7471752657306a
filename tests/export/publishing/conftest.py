"""The stand-ins for S3 and S3 Vectors, and bundles to publish."""

import pytest

from tests.stand_ins.fixtures import (
    bundles,
    endpoint,
    keys,
    publish,
    published,
    quiet_server,
    s3,
    send,
    server,
    store,
    url,
)


@pytest.fixture
def where(url: str, endpoint: str, keys: dict[str, str]) -> list[str]:
    """The arguments that lead a command to the prefix of the test."""
    return [url, "--endpoint", endpoint, "--region", keys["AWS_REGION"]]
