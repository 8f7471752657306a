"""The kernel's page cache: files that were read before are in memory, and only root can have them dropped."""

import os
import subprocess
from pathlib import Path

from bench.report import console

WARM, DROPPED = "warm", "dropped"


def available_states() -> tuple[str, ...]:
    """Return the states of the page cache that this user can measure."""
    if os.geteuid() == 0:
        return WARM, DROPPED
    console.print("not root: starts with the page cache dropped are left out")
    return (WARM,)


def drop_page_cache() -> None:
    """Make the kernel forget the files that it holds in memory, so that the next start reads the disk."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
