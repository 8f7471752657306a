"""What pyproject.toml states: the version, and how the tests run."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from semsearch.version import VERSION
from tests.project import ROOT


def test_a_run_of_the_tests_does_not_load_pytest_asyncio_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "warns.py").write_text("import warnings\n\ndef pytest_configure():\n    warnings.warn('unset')\n")
    about = tmp_path / "pytest_asyncio-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-asyncio\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pytest11]\nasyncio = warns\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "--noconftest", "tests/test_names.py"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_and_the_extra_for_an_index_state_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    assert f"semsearch-model=={VERSION}" in project["optional-dependencies"]["index"]
