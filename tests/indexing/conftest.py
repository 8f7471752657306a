"""All of these tests run their commands in this process."""

from pathlib import Path

import pytest

from semsearch.indexing.bundles import take_model
from tests.indexing.changes.judge import judge, make_site


@pytest.fixture(scope="session", autouse=True)
def _quick(quick_commands: None) -> None:
    """Export models and read documents in the process of these tests."""


@pytest.fixture
def out(bundle: Path, tmp_path: Path) -> Path:
    """A bundle with a model and no texts."""
    (tmp_path / "b").mkdir()
    take_model(bundle, tmp_path / "b")
    return tmp_path / "b"
