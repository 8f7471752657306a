"""All of these tests run their commands in this process, and torch on one thread: the models are tiny."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _quick(quick_commands: None) -> None:
    import torch

    torch.set_num_threads(1)
