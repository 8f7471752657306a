"""The folder of the project, and commands of a shell in it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


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
