"""Install torch as a CPU build into the running environment: only the export needs it, and it needs no GPU.

On Linux a plain `pip install torch` brings gigabytes of CUDA, so a build named `+cpu` is asked for first; pip finds one
where it was told of a place that has them (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS). Otherwise uv is asked, which knows
where PyTorch keeps its CPU builds. Standard library only: this runs before anything is installed.
"""

import subprocess
import sys
from importlib.util import find_spec

VERSION = "2.13.0"


def main() -> int:
    """Install, unless torch is there; give the exit code."""
    if find_spec("torch") is not None:
        return 0
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if sys.platform != "linux":  # there the ordinary build is the CPU build
        return _run([*pip, f"torch=={VERSION}"])
    if _run([*pip, f"torch=={VERSION}+cpu"], quiet=True) == 0:
        return 0
    if _run([*pip, "uv"]) == 0:
        return _run([sys.executable, "-m", "uv", "pip", "install", "--torch-backend", "cpu", f"torch=={VERSION}"])
    return 1


def _run(command: list[str], quiet: bool = False) -> int:
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL if quiet else None).returncode  # noqa: S603  our own words


if __name__ == "__main__":
    sys.exit(main())
