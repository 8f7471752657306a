"""The folder of the project, that of a run of its tests, and commands of a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def needs_linux(what: str) -> pytest.MarkDecorator:
    """Return the mark of a test that uses what other systems do not have, such as "/proc"."""
    return pytest.mark.skipif(sys.platform != "linux", reason=f"needs Linux's {what}")


def run_in_a_shell(command: str, **environment: str) -> tuple[int, str, str]:
    """Run a command of bash; return its exit code, stdout and stderr."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all workers of a run of pytest share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
