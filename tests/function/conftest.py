"""Imports can be looked at only in a process that has not imported anything yet."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def in_a_new_process() -> Callable[..., Any]:
    """Give what runs a script in a process of its own, warnings being errors, and reads its last line as JSON."""

    def run(script: str, folder: Path = ROOT, **environment: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The function as an image has it: a folder with a copy of it, and the archive of its imports."""
    folder = tmp_path_factory.mktemp("task")
    shutil.copytree(ROOT / "function", folder / "function", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "function.quick_start"], cwd=folder, check=True, timeout=60)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "function"], cwd=folder, check=True, timeout=60)
    return folder
