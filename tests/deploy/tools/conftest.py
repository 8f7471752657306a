"""The tools that look at the deployment from outside: `make test-template` installs them."""

from pathlib import Path

import pytest

from tests.project import ROOT

TOOLS = ROOT / "build" / "template-tools" / "bin"


@pytest.fixture(scope="session")
def tools() -> Path:
    """The programs of the environment that has checkov and SAM's translator."""
    assert TOOLS.is_dir(), f"{TOOLS.parent} is missing: run these tests by `make test-template`"
    return TOOLS
