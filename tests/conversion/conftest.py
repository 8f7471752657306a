"""All of these tests run their commands in this process."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _quick(quick_commands: None) -> None:
    pass
