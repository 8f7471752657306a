"""Small and full disks: real ones, where the tests may mount them, and numbers for simulated ones."""

import os
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Usage = namedtuple("Usage", "total used free")  # as shutil.disk_usage returns it


def set_free(patch: pytest.MonkeyPatch, free: int, total: int = 10**12) -> None:
    """Make every disk seem to have this number of bytes free."""
    patch.setattr(shutil, "disk_usage", lambda path: Usage(total, total - free, free))


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
