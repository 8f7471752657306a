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


@pytest.fixture(scope="session", autouse=True)
def _quick(quick_commands: None) -> None:
    """Export models and read documents in the process of these tests."""
