"""Small and full disks, where the tests may mount them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(target: Path, *options: str) -> Iterator[Path]:
    """Mount with mount's own options; the target is made if it is not there. Skips the test where that is forbidden."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    target.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mount {' '.join(options)}: {done.stderr.strip()}")
    try:
        yield target
    finally:
        # lazily: a test that failed may still map files there, and a mount left behind stops pytest from cleaning up
        subprocess.run(["umount", "--lazy", target], check=True)


def small_disk(kilobytes: int) -> tuple[str, ...]:
    """Return mount's options for a file system in memory of this size."""
    return ("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs")
